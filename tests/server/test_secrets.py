"""Secrets of 40 kinds, planted in documents, names, headers and addresses: not in memories, profile, logs, vectors, audit."""

from __future__ import annotations

import base64
import hashlib
import logging
import random
import sqlite3
import string
from pathlib import Path

import pytest

from memdir.core.log import log_to_file
from memdir.core.secrets import masked
from memdir.ingest.chunker import chunk
from memdir.ingest.text import decode
from memdir.memory.extract import extract
from memdir.memory.guard import is_secret
from memdir.store.text.passage_text import embedded_text
from tests.server.test_search_http import done
from tests.servers import ServerProcess

_LETTERS = string.ascii_letters + string.digits


def _made(kind: str, count: int, alphabet: str = _LETTERS) -> str:
    """Random characters, the same in every run."""
    return "".join(random.Random(kind).choices(alphabet, k=count))


def _b64(kind: str, count: int) -> str:
    return base64.b64encode(hashlib.shake_256(kind.encode()).digest(count)).decode()


def _hex(kind: str, count: int) -> str:
    return hashlib.shake_256(kind.encode()).hexdigest(count // 2)


UPPER = string.ascii_uppercase + string.digits
SECRETS: dict[str, str] = {
    "AWS access key": "AKIA" + _made("aws", 16, UPPER),
    "AWS session key": "ASIA" + _made("asia", 16, UPPER),
    "AWS secret": "aws_secret_access_key = " + _made("awss", 40),
    "GitHub personal": "ghp_" + _made("ghp", 36),
    "GitHub OAuth": "gho_" + _made("gho", 36),
    "GitHub server": "ghs_" + _made("ghs", 36),
    "GitHub fine-grained": "github_pat_" + _made("pat", 82),
    "GitLab": "glpat-" + _made("gl", 20),
    "Slack bot": "xoxb-123456789012-" + _made("xoxb", 24),
    "Slack app": "xapp-1-A0" + _made("xa", 9, UPPER) + "-1234567890123-" + _hex("xapp", 64),
    "Slack webhook": "https://hooks.slack.com/services/T"
    + _made("sw", 8, UPPER)
    + "/B"
    + _made("sb", 8, UPPER)
    + "/"
    + _made("sc", 24),
    "Google API": "AIza" + _made("g", 35),
    "Google OAuth secret": "GOCSPX-" + _made("gs", 28),
    "Google OAuth token": "ya29." + _made("ya", 60),
    "Stripe live": "sk_live_" + _made("st", 24),
    "Stripe restricted": "rk_live_" + _made("rk", 24),
    "Stripe webhook": "whsec_" + _made("wh", 32),
    "OpenAI project": "sk-proj-" + _made("oa", 48),
    "OpenAI": "sk-" + _made("ob", 20) + "T3BlbkFJ" + _made("oc", 20),
    "Anthropic": "sk-ant-api03-" + _made("an", 90),
    "npm": "npm_" + _made("npm", 36),
    "npmrc": "_authToken=" + _made("npmrc", 36),
    "PyPI": "pypi-AgEIcHlwaS5vcmc" + _made("py", 60),
    "Hugging Face": "hf_" + _made("hf", 34),
    "SendGrid": "SG." + _made("sg", 22) + "." + _made("sh", 43),
    "Mailgun": "key-" + _hex("mg", 32),
    "Telegram": "123456789:AA" + _made("tg", 33),
    "DigitalOcean": "dop_v1_" + _hex("do", 64),
    "Shopify": "shpat_" + _hex("sp", 32),
    "Azure storage": "AccountKey=" + _b64("az", 64),
    "memdir": "md_" + _made("md", 43),
    "JSON web token": "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiI" + _made("jw", 20) + "." + _made("jx", 43),
    "authorization header": "Authorization: Bearer " + _made("au", 40),
    "password in a URL": "postgresql://admin:" + _made("pg", 14) + "@db.example.org/main",
    "API key assignment": 'api_key = "' + _made("ak", 32) + '"',
    "password assignment": "password: " + _made("pw", 12) + "7x",
    "client secret": "client_secret=" + _made("cs", 40),
    "PEM key": "-----BEGIN PRIVATE KEY-----",
    "OpenSSH key": "-----BEGIN OPENSSH PRIVATE KEY-----",
    "PuTTY key": "PuTTY-User-Key-File-3: ssh-ed25519",
    "age key": "AGE-SECRET-KEY-1" + _made("age", 58, UPPER),
    "payment card": "4111 1111 1111 1111",
    "spoken password": "my password is Tr0ub4dor&3",
    "hex secret": "secret: " + _hex("hx", 64),
}
SENTENCES = (
    "- I use {} at work.\n",
    "I work with {} since 2024-05-01.\n",
    "- Key: {}\n",
    "My favourite is {}.\n",
    "We decided to use {}.\n",
)


def core_of(secret: str) -> str:
    """The part that is the secret itself."""
    return max(secret.replace('"', " ").replace("=", " ").split(), key=len)


def test_there_are_forty_kinds() -> None:
    assert len(SECRETS) >= 40


@pytest.mark.parametrize("kind", SECRETS)
def test_no_sentence_with_a_secret_becomes_a_memory(kind: str) -> None:
    secret = SECRETS[kind]
    assert is_secret(f"I use {secret} at work.")
    text = "# Me\n\n" + "\n".join(sentence.format(secret) for sentence in SENTENCES) + "\n- I live in Vienna.\n"
    found = extract(text, "/memory/me.md", byte_at=lambda position: position)
    assert [memory.text for memory in found if core_of(secret) in memory.text] == []
    assert any("Vienna" in memory.text for memory in found), "what stands beside it is remembered"
    named = extract("- I live in Vienna.\n", f"/memory/{secret.replace('/', '')}.md", byte_at=lambda position: position)
    assert all(core_of(secret).casefold() not in memory.subject for memory in named)


SPOKEN = {"payment card", "spoken password"}
"""Told by the words around them or by their sum: kept out of memories, not masked."""


@pytest.mark.parametrize("kind", sorted(set(SECRETS) - SPOKEN))
def test_neither_a_log_nor_a_model_sees_a_secret(kind: str, tmp_path: Path) -> None:
    secret = SECRETS[kind]
    core = core_of(secret) if "PRIVATE KEY" not in secret else "MIIEvQIBADANBg"
    body = f"\n{core}kqhkiG9w0BAQ\n-----END" if "PRIVATE KEY" in secret else ""
    text = f"Größe ✓ before {secret}{body} after ✓"
    shown = masked(text)
    assert core not in shown
    assert len(shown) == len(text)
    assert shown.startswith("Größe ✓ before")
    assert shown.endswith("after ✓")
    assert masked(shown) == shown

    logger = logging.getLogger("memdir")
    handlers, level = list(logger.handlers), logger.level
    try:
        log_to_file(tmp_path / "x.log")
        logging.getLogger("memdir.test").error("could not read %s", f"/notes/{secret}.md")
        try:
            raise ValueError(secret)
        except ValueError:
            logging.getLogger("memdir.test").exception("failed")
    finally:
        for handler in set(logger.handlers) - set(handlers):
            handler.close()
            logger.removeHandler(handler)
        logger.setLevel(level)
    logged = (tmp_path / "x.log").read_text()
    assert "failed" in logged
    if "PRIVATE KEY" not in secret:
        assert core not in logged

    for piece in chunk(decode(text.encode()), "/a.md"):
        assert core not in embedded_text(piece)


def test_ordinary_text_is_left_as_it_is() -> None:
    for text in (
        "", "plain words", "The token ring network of 1985.", "api_key = os.environ['KEY']", "https://example.org/a?b=c",
        "commit 2fd4e1c67a2d28fced849ee1bb76e7391b93eb12", "\ud800 lone", "密码学是一门学科",
    ):  # fmt: skip
        assert masked(text) == text


@pytest.mark.promise("keys.secrets")
def test_planted_secrets_reach_no_memory_profile_log_or_audit(server: ServerProcess, tag: str) -> None:
    at = {"containerTag": tag}
    with server.client() as client:
        for number, (kind, secret) in enumerate(SECRETS.items()):
            text = "".join(sentence.format(secret) for sentence in SENTENCES) + f"\n- I live in town {number}.\n"
            assert client.put(f"/v1/files/memory/{number}.md", params=at, content=text.encode()).status_code == 201, kind
        plain = [secret for kind, secret in SECRETS.items() if kind not in SPOKEN and "/" not in secret and " " not in secret]
        for secret in plain:
            client.put(f"/v1/files/named/{secret}.md", params=at, content=b"x")
            client.get("/v1/files/absent", params=at, headers={"X-Request-Id": secret[:64], "User-Agent": secret})
            client.get("/v1/nothing/" + secret, headers={"Authorization": f"Bearer {secret}"})
        done(client, tag)
        profile = client.post("/v4/profile", json=at | {"q": "what do I use at work"}).text
        assert "town" in profile
        facts = client.post("/v4/profile", json=at).text
        memories = client.post("/v4/memories/list", json={"containerTags": [tag]}).text
        audit = client.get("/v1/audit", params={"container": tag, "limit": 1000}).text
    with sqlite3.connect(server.home / "data" / "server" / "memdir.db") as db:
        kept = "\n".join(f"{text} {subject}" for text, subject in db.execute("select text, subject from memory"))
    db.close()
    logged = "".join(file.read_text(errors="replace") for file in (server.home / "state").rglob("*.log*"))
    assert "town" in kept
    for kind, secret in SECRETS.items():
        core = core_of(secret)
        if kind in ("PEM key", "OpenSSH key"):
            core = secret
        for place, text in {"profile": facts, "memories": memories + kept, "log": logged}.items():
            assert core not in text, (kind, place)
    for secret in plain:
        assert secret not in audit
