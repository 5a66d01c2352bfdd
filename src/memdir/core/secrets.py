"""Does this hold a secret? Asked before a folder is imported, so that keys do not wander into a memory and its server; before
a sentence becomes a memory; before a line goes into a log or a text to an embedding model.

Two ways to find out: by name (`id_rsa`, `.env`, `*.pem`, …) and by content (the published formats of well-known tokens, and
generic `api_key = "…"` assignments whose value looks random). The formats are the ones that the issuers document for secret
scanning (docs.github.com/code-security/secret-scanning, docs.aws.amazon.com/IAM identifiers, and so on); the ways
in which common commands take a password. A finding names the rule and the line, never the secret.

What this cannot do: recognise a password that reads like a word, or anything inside an archive or an encrypted file.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import BinaryIO, Final

_WINDOW_BYTES: Final = 1024 * 1024
_OVERLAP_BYTES: Final = 8 * 1024
"""Longer than any token below, so that none is cut in two."""
SCAN_MAX_BYTES: Final = 256 * 1024 * 1024
"""Contents behind this are not looked at: text that a person keeps is far smaller."""
_TOKEN_MIN_CHARS: Final = 16
_PASSWORD_ENTROPY_MIN_BITS: Final = 2.5
_ENTROPY_MIN_BITS: Final = 3.5
"""Shannon entropy per character of a generic secret; English words lie near 3, random base 62 above 4 at 20 characters."""

_HEX: Final = re.compile(rb"[0-9a-fA-F]{32,}")
_HEX_ENTROPY_MIN_BITS: Final = 3.0
"""Of 32 random hexadecimal digits, which have four bits at most, and 3.5 on average."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretFinding:
    """Why a file is held back. `line` is None when its name alone says it."""

    rule: str
    line: int | None = None

    def __str__(self) -> str:
        return self.rule if self.line is None else f"{self.rule} in line {self.line}"


@dataclass(frozen=True, slots=True)
class _Rule:
    name: str
    anchors: tuple[bytes, ...]
    """Lower-case literals that a match begins with. They are looked for first, at memory speed; the pattern is tried only
    where one stands (searching for 40 patterns everywhere was 20 times slower)."""
    pattern: re.Pattern[bytes]


def _rule(name: str, anchors: str, pattern: str, flags: int = 0) -> _Rule:
    return _Rule(name, tuple(anchors.encode().split()), re.compile(pattern.encode(), flags))


_PRIVATE_KEY: Final = "private key"
_COMMAND: Final = "password in a command"
_GENERIC: Final = "generic secret"
_START: Final = r"(?<![A-Za-z0-9_])"
_END: Final = r"(?![A-Za-z0-9_])"
_WORDS: Final = r"(?:[^\s|;&]+(?:[ \t]|\\\r?\n)+){0,20}?"
"""Other words of the same command, which may go on behind a backslash."""
_VALUE: Final = r"[\"']?([^\s\"'`|;&<>,)]{4,200})"
_NO_OPTION: Final = r"(?!(?:[a-z-]+|[\d:]+)(?![^\s,.;)]))"
"""Not `-pthread`, `-p3306:3306`."""

_ANNOUNCED: Final = "announced password"
_PASSWORD_WORDS: Final = (
    "passwort",
    "kennwort",
    "contraseña",
    "contrasena",
    "mot de passe",
    "senha",
    "palavra-passe",
    "wachtwoord",
    "lösenord",
    "hasło",
    "heslo",
    "jelszó",
    "parola",
    "пароль",
    "密码",
    "密碼",
    "パスワード",
    "비밀번호",
    "la password",
    "şifre",
)
"""What people who do not write English call it."""
_SPELLED: Final = tuple(
    dict.fromkeys(spelled for word in _PASSWORD_WORDS for spelled in (word, word.capitalize(), word.upper()))
)
_ANNOUNCERS: Final = " ".join(dict.fromkeys(spelled.split(" ")[0].encode().lower().decode() for spelled in _SPELLED))
"""Anchors: bytes are lowered as ASCII only."""

_RULES: Final = (
    _rule("AWS access key id", "akia asia abia acca", _START + r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}" + _END),
    _rule(
        "AWS secret key", "aws secret",
        r"(?:aws|secret)[^\n]{0,50}?(?<![A-Za-z0-9/+])([A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])", re.IGNORECASE,
    ),
    _rule("GitHub token", "ghp_ gho_ ghu_ ghs_ ghr_", _START + r"gh[pousr]_[A-Za-z0-9]{36,255}" + _END),
    _rule("GitHub token", "github_pat_", _START + r"github_pat_[A-Za-z0-9_]{22,255}" + _END),
    _rule("GitLab token", "glpat- gldt- glrt-", _START + r"gl(?:pat|dt|rt)-[A-Za-z0-9_-]{20,}"),
    _rule("Slack token", "xox", _START + r"xox[abeoprs]-(?:\d+-)?[A-Za-z0-9-]{10,}"),
    _rule("Slack token", "xapp-", _START + r"xapp-\d-[A-Z0-9]+-\d+-[a-z0-9]{32,}"),
    _rule("Slack webhook", "hooks.slack.com", r"hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9+/]{20,}"),
    _rule("Google API key", "aiza", _START + r"AIza[A-Za-z0-9_-]{35}" + _END),
    _rule("Google OAuth secret", "gocspx-", _START + r"GOCSPX-[A-Za-z0-9_-]{28}" + _END),
    _rule("Google OAuth token", "ya29.", _START + r"ya29\.[A-Za-z0-9_-]{30,}"),
    _rule("Stripe key", "sk_live_ sk_test_ rk_live_ rk_test_", _START + r"[sr]k_(?:live|test)_[A-Za-z0-9]{16,}" + _END),
    _rule("Stripe webhook secret", "whsec_", _START + r"whsec_[A-Za-z0-9+/=]{24,}"),
    _rule(_PRIVATE_KEY, "-----begin", r"-----BEGIN (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----"),
    _rule(
        "private key without a header", "mii mig mhcc mc4caqawbqydk2vwbciei b3blbnnzac1rzxktdj",
        _START + r"(?:MII[A-Za-z0-9+/]{3}IBA(?:AKC|AKB|DAN)|MIG[A-Za-z0-9+/]{1,2}AgEAMBMGByqGSM49|MHcCAQEEI"
        r"|MC4CAQAwBQYDK2VwBCIEI|b3BlbnNzaC1rZXktdj)[A-Za-z0-9+/=\s]{20,}",
    ),
    _rule("PuTTY private key", "putty-user-key-file-", r"PuTTY-User-Key-File-\d:"),
    _rule("age secret key", "age-secret-key-1", r"AGE-SECRET-KEY-1[0-9A-Z]{58}"),
    _rule("OpenAI key", "sk-proj- sk-svcacct- sk-admin-", _START + r"sk-(?:proj|svcacct|admin)-[A-Za-z0-9_-]{40,}"),
    _rule("OpenAI key", "sk-", _START + r"sk-[A-Za-z0-9]{20}T3BlbkFJ[A-Za-z0-9]{20}" + _END),
    _rule("Anthropic key", "sk-ant-", _START + r"sk-ant-[a-z]+\d{2}-[A-Za-z0-9_-]{40,}"),
    _rule("npm token", "npm_", _START + r"npm_[A-Za-z0-9]{36}" + _END),
    _rule("npm registry password", "_authtoken _password", _START + r"_(?:authToken|password)\s*=\s*([A-Za-z0-9+/=_-]{16,})"),
    _rule("PyPI token", "pypi-", _START + r"pypi-[A-Za-z0-9_-]{50,}"),
    _rule("Hugging Face token", "hf_", _START + r"hf_[A-Za-z0-9]{34}" + _END),
    _rule("SendGrid key", "sg.", _START + r"SG\.[A-Za-z0-9_-]{16,32}\.[A-Za-z0-9_-]{32,64}"),
    _rule("Mailgun key", "key-", _START + r"key-[0-9a-f]{32}" + _END),
    _rule("Telegram bot token", ":aa", r"(?<=\d{8}):AA[A-Za-z0-9_-]{33}" + _END),
    _rule("DigitalOcean token", "dop_v1_ doo_v1_ dor_v1_", _START + r"do[opr]_v1_[a-f0-9]{64}" + _END),
    _rule("Shopify token", "shpat_ shpca_ shppa_ shpss_", _START + r"shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32}" + _END),
    _rule("Azure storage key", "accountkey=", r"(?i:AccountKey)=[A-Za-z0-9+/]{86}=="),
    _rule("memdir API key", "md_", _START + r"md_[A-Za-z0-9_-]{43}(?![A-Za-z0-9_-])"),
    _rule(
        "JSON web token", "eyj",
        _START + r"eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{16,}",
    ),
    _rule(
        "authorization header", "authorization",
        r"(?i:authorization)[\"']?\s*[:=]\s*[\"']?(?i:bearer|basic|token)\s+([A-Za-z0-9+/=_.~-]{20,})",
    ),
    _rule("password in a URL", "://", r"(?<=[A-Za-z0-9])://[^\s:@/\"'<>]{0,80}:([^\s:@/\"'<>]{6,200})@[A-Za-z0-9.\[-]"),
    _rule(
        "credential in a URL's query",
        "password= passwd= pwd= token= access_token= api_key= apikey= secret= sig= signature= auth=",
        r"(?<=[?&])(?:password|passwd|pwd|token|access_token|api_key|apikey|secret|sig|signature|auth)=([^\s&#\"'<>]{6,500})",
        re.IGNORECASE,
    ),
    _rule(
        _ANNOUNCED, _ANNOUNCERS,
        r"(?:" + "|".join(map(re.escape, _SPELLED)) + r")(?: [^\s:=]{1,30}){0,3}?"
        r"\s?(?::|：|=|\s(?:ist|lautet|war|es|est|è|é|to|это)|は)\s{0,2}[\"']?"
        r"([^\s\"']{0,60}\d[^\s\"']{0,60}|[^\s\"']{4,60}(?=[\"'.,;!)]{0,3}[ \t]*(?:[\r\n]|\Z)))",
        re.IGNORECASE,
    ),
    _rule("Discord webhook", "discord", r"discord(?:app)?\.com/api/webhooks/\d{15,}/[A-Za-z0-9_-]{60,}"),
    _rule(
        "encoded private key", "ls0tls1crudjtib",
        r"LS0tLS1CRUdJTiB(?:QUklWQVRFIEtFWS|SU0EgUFJJVkFURSBLRVkt|FQyBQUklWQVRFIEtFWS|PUEVOU1NIIFBSSVZBVEUgS0VZ"
        r"|FTkNSWVBURUQgUFJJVkFURSBLRVkt)[A-Za-z0-9+/=]*",
    ),
    _rule(_COMMAND, "curl", _START + r"curl\s" + _WORDS + r"(?:-u\s*|--user[= ]\s*)[\"']?[^\s:\"'`]{0,100}:" + _VALUE),
    _rule(_COMMAND, "mysql mariadb", _START + r"(?:mysql|mariadb)[a-z-]*\s" + _WORDS + r"-p" + _NO_OPTION + _VALUE),
    _rule(_COMMAND, "sshpass", _START + r"sshpass\s+-p\s*" + _VALUE),
    _rule(_COMMAND, "redis-cli", _START + r"redis-cli\s" + _WORDS + r"(?:-a|--pass)[= ]\s*" + _VALUE),
    _rule(
        _COMMAND, "docker podman az oc helm",
        _START + r"(?:docker|podman|az|oc|helm registry) login\s" + _WORDS + r"(?:-p\s*|--password[= ]\s*)(?!\d+:)" + _VALUE,
    ),
    _rule(_GENERIC, "--pass", r"--pass(?:word|wd|phrase)?\s+" + _VALUE),
    _rule("password in .netrc", "machine", _START + r"machine\s+\S*[.\d]\S*\s+login\s+\S+\s+password\s+" + _VALUE),
    _rule(
        _GENERIC, "cookie",
        r"cookie\s*:[^\n]{0,400}?(?:sess[a-z_.-]*|sid|jwt|auth[a-z_.-]*)=([A-Za-z0-9%+/=_.-]{16,4096}+)", re.IGNORECASE,
    ),
    _rule(
        _GENERIC,
        "api_key api-key apikey access_key access-key accesskey private_key encryption_key secret token passw pwd credential",
        r"(?:api[_-]?key|access[_-]?key|private_key|encryption_key|secret|token|passw(?:or)?d|pwd|credentials?)[A-Za-z0-9_-]{0,20}"
        r"[\"']?(?:\s{0,4}(?::=|=>|=|:)|\s(?:is|was)(?:\s|:))\s{0,4}[\"'`]?([A-Za-z0-9+/=_.~!@#$%^&*-]{6,4096}+)(?![(\[{])",
        re.IGNORECASE,
    ),
    _rule(
        _GENERIC, "auth api access",
        r"(?:auth|api|access)\s(?:token|key)\s(?:is\s)?[\"'`]?([A-Za-z0-9+/=_-]{20,4096}+)", re.IGNORECASE,
    ),
)  # fmt: skip

_PLACEHOLDER: Final = re.compile(
    rb"example|placeholder|changeme|change_me|redacted|dummy|sample|your[_-]|insert|todo|xxxx|\*\*\*\*|\.\.\.\.|0000000|1234567|abcdef",
    re.IGNORECASE,
)
_VARIABLE: Final = re.compile(rb"^(?:\$|%|\{\{|<)|^(?:process\.env|os\.environ|env|settings|config|self|request|args)\b[.\[]")
_EASY_PASSWORDS: Final = frozenset(
    (b"admin", b"guest", b"pass", b"passwd", b"password", b"mypass", b"mypassword", b"secret", b"token", b"postgres", b"123456")
)
_NAME: Final = re.compile(rb"[A-Z_]+")
"""What a command line of a manual has in place of a value."""
_ALGORITHM: Final = re.compile(
    rb"argon2|bcrypt|scrypt|pbkdf2|sha-?\d|md5|aes|hmac|base64|oauth2|utf-?8|[rh]s256|ed25519", re.IGNORECASE
)

_KEY_NAMES: Final = re.compile(
    r"""(?:
        id_(?:rsa|dsa|ecdsa|ed25519)(?:_sk)? | .+\.(?:pem|p12|pfx|jks|keystore|kdbx|ppk|p8)
      | [._]netrc | \.pgpass | \.my\.cnf | \.htpasswd | \.pypirc | \.git-credentials | \.vault-token
      | \.env | \.env\.(?!example$|sample$|template$|dist$|defaults$).+ | \.envrc
    )\Z""",
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)
_KEY_PATHS: Final = re.compile(
    r"(?:^|/)(?:\.aws/credentials|\.docker/config\.json|\.kube/config|\.gnupg/.+|\.config/gh/hosts\.yml|\.cargo/credentials(?:\.toml)?)\Z",
    re.DOTALL,
)


def scan_name(path: str) -> SecretFinding | None:
    """What the name alone says. `path` is relative, `/`-separated."""
    name = path.rpartition("/")[2]
    if _KEY_NAMES.fullmatch(name) or _KEY_PATHS.search(path):
        return SecretFinding(rule=f"{name} usually holds a secret")
    return None


def scan_bytes(content: bytes) -> SecretFinding | None:
    """The first secret in `content`, or None."""
    return _scan_windows([content])


def masked(text: str) -> str:
    """`text` with every secret in it written as `x`, as many as it had characters, so that positions in it stay what they are.
    A private key is masked to its end, or to the end of the text."""
    raw = text.encode("utf-8", "surrogatepass")
    spans = sorted(_all_matches(raw))
    if not spans:
        return text
    parts: list[str] = []
    done = 0
    for start, end in spans:
        if end <= done:
            continue
        first = max(start, done)
        parts.append(raw[done:first].decode("utf-8", "surrogatepass"))
        parts.append("x" * len(raw[first:end].decode("utf-8", "replace")))
        done = end
    parts.append(raw[done:].decode("utf-8", "surrogatepass"))
    return "".join(parts)


REDACTED: Final = "[redacted]"


def kinds(text: str) -> list[str]:
    """The rules that secrets in `text` were found by, in order of their names; the generic one for what no other knows."""
    found = list(_named_matches(text.encode("utf-8", "surrogatepass")))
    known = [(start, end) for rule, start, end in found if rule != _GENERIC]
    return sorted(
        {
            rule
            for rule, start, end in found
            if rule != _GENERIC or not any(first < end and start < last for first, last in known)
        }
    )


def redacted(text: str) -> str:
    """`text` with REDACTED in place of every secret."""
    raw = text.encode("utf-8", "surrogatepass")
    parts: list[bytes] = []
    done = 0
    for start, end in sorted(_all_matches(raw)):
        if end > done:
            parts += [raw[done:start], REDACTED.encode()] if start >= done else []
            done = end
    parts.append(raw[done:])
    return b"".join(parts).decode("utf-8", "surrogatepass")


def scan_stream(stream: BinaryIO) -> SecretFinding | None:
    """The first secret in what is left of `stream`, read in pieces; looks at the first SCAN_MAX_BYTES."""
    return _scan_windows(_pieces(stream))


def _pieces(stream: BinaryIO) -> Iterator[bytes]:
    left = SCAN_MAX_BYTES
    while left > 0:
        piece = stream.read(min(_WINDOW_BYTES, left))
        if not piece:
            return
        left -= len(piece)
        yield piece


def _scan_windows(pieces: Iterable[bytes]) -> SecretFinding | None:
    """Windows overlap; a line number counts the newlines in front of a finding, over all windows."""
    codec: str | None = None
    kept = b""
    lines_before = 1
    for number, raw in enumerate(pieces):
        if number == 0:
            codec = _wide_codec(raw)
        piece = raw if codec is None else raw.decode(codec, "replace").encode("utf-8", "replace")
        window = kept + piece
        found = _first_match(window)
        if found is not None:
            rule, start = found
            return SecretFinding(rule=rule, line=lines_before + window.count(b"\n", 0, start))
        kept = window[-_OVERLAP_BYTES:]
        lines_before += window.count(b"\n", 0, len(window) - len(kept))
    return None


def _wide_codec(first: bytes) -> str | None:
    """UTF-16 hides every pattern behind NULs; it is recognised by its mark. Pieces have an even length, so none is cut."""
    if first.startswith(b"\xff\xfe"):
        return "utf-16-le"
    return "utf-16-be" if first.startswith(b"\xfe\xff") else None


def _first_match(window: bytes) -> tuple[str, int] | None:
    lowered = window.lower()
    best: tuple[str, int] | None = None
    for rule in _RULES:
        for anchor in rule.anchors:
            end = len(window) if best is None else best[1]
            start = lowered.find(anchor, 0, end)
            while start >= 0:
                match = rule.pattern.match(window, start)
                if match is not None and _is_real(rule, match):
                    best = (rule.name, start)
                    break
                start = lowered.find(anchor, start + 1, end)
    return best


def _all_matches(window: bytes) -> Iterator[tuple[int, int]]:
    """Where secrets stand: of an assignment its value."""
    return ((start, end) for _, start, end in _named_matches(window))


def _named_matches(window: bytes) -> Iterator[tuple[str, int, int]]:
    """The same with the name of the rule."""
    lowered = window.lower()
    for rule in _RULES:
        for anchor in rule.anchors:
            start = lowered.find(anchor)
            while start >= 0:
                match = rule.pattern.match(window, start)
                if match is not None and _is_real(rule, match):
                    first, end = match.span(rule.pattern.groups and 1)
                    if rule.name == _PRIVATE_KEY:
                        closing = window.find(b"-----END", end)
                        end = len(window) if closing < 0 else closing
                    yield rule.name, first, end
                start = lowered.find(anchor, start + 1)


def _is_real(rule: _Rule, match: re.Match[bytes]) -> bool:
    """In assignments, placeholders and references to variables are no secrets. A well-known format always counts, even when it
    is the example of its issuer's documentation: leaving a file out is listed and easy to repair, a leaked key is neither."""
    if rule.pattern.groups == 0:
        return True
    value = match.group(1)
    if rule.name == "AWS secret key":
        return all(re.search(kind, value) for kind in (rb"[A-Z]", rb"[a-z]", rb"[0-9]"))
    if _PLACEHOLDER.search(value) or _VARIABLE.search(value):
        return False
    if rule.name in (_COMMAND, "password in a URL"):
        return value.lower() not in _EASY_PASSWORDS and not (rule.name == _COMMAND and _NAME.fullmatch(value))
    if rule.name == _GENERIC:
        is_password = match.group().lower().startswith((b"passw", b"pwd", b"--pass"))
        return _looks_random(value, is_password=is_password) and not _ALGORITHM.match(value)
    return True


def _looks_random(value: bytes, *, is_password: bool) -> bool:
    """People choose passwords that are shorter and plainer than the tokens that machines make."""
    digits = sum(48 <= byte <= 57 for byte in value)
    letters = sum(65 <= byte <= 90 or 97 <= byte <= 122 for byte in value)
    entropy = entropy_bits(value)
    if is_password:
        random = digits >= 1 and letters >= 2 and entropy >= _PASSWORD_ENTROPY_MIN_BITS
    else:
        enough = _HEX_ENTROPY_MIN_BITS if _HEX.fullmatch(value) else _ENTROPY_MIN_BITS
        random = len(value) >= _TOKEN_MIN_CHARS and digits >= 2 and letters >= 4 and entropy >= enough
    return random and not _reads_like_code(value)


def _reads_like_code(value: bytes) -> bool:
    """`module.attribute2.call`, `/a/path/v2`, a date or a file name: separators between words and no mixing inside them."""
    words = re.split(rb"[/._\-=]+", value)
    mixed = sum(1 for word in words if re.search(rb"\d[A-Za-z]|[A-Za-z]\d", word) and len(word) >= 8)
    return len(words) > 1 and mixed == 0


def entropy_bits(value: bytes) -> float:
    """Shannon entropy of the bytes of `value`, in bits per byte."""
    if not value:
        return 0.0
    total = len(value)
    return -sum(count / total * math.log2(count / total) for count in Counter(value).values())
