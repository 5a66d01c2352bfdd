"""The secret scan finds planted secrets of many kinds and leaves ordinary text alone. Secrets are put together at run time, so
that no scanner trips over this file."""

from __future__ import annotations

import base64
import hashlib
import io
import random
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memdir.core.secrets import SecretFinding, entropy_bits, scan_bytes, scan_name, scan_stream


def chars(count: int, alphabet: str = string.ascii_letters + string.digits, *, seed: int = 7) -> str:
    """A reproducible random string with at least one digit and one letter."""
    source = random.Random(seed)
    body = [source.choice(alphabet) for _ in range(count)]
    if count > 4 and set(string.digits) & set(alphabet) and set(string.ascii_letters) & set(alphabet):
        body[1], body[3] = (
            source.choice([c for c in alphabet if c in string.digits]),
            source.choice([c for c in alphabet if c in string.ascii_letters]),
        )
    return "".join(body)


UPPER32 = string.ascii_uppercase + "234567"
HEX = "0123456789abcdef"
URLSAFE = string.ascii_letters + string.digits + "-_"

PLANTED: dict[str, str] = {
    "AWS access key id": "AKIA" + chars(16, UPPER32),
    "AWS session key id": "ASIA" + chars(16, UPPER32),
    "AWS secret key": "aws_secret_" + "access_key = " + chars(40),
    "AWS documentation's key id": "AKIAIOSF" + "ODNN7EXAMPLE",
    "AWS documentation's secret": "AWS_SECRET_" + "ACCESS_KEY=" + "wJalrXUtnFEMI/" + "K7MDENG/bPxRfiCYEXAMPLEKEY",
    "GitHub personal token": "ghp" + "_" + chars(36),
    "GitHub server token": "ghs" + "_" + chars(36),
    "GitHub fine-grained token": "github" + "_pat_" + chars(82),
    "GitLab token": "glpat" + "-" + chars(20),
    "Slack bot token": "xoxb" + "-" + chars(12, string.digits) + "-" + chars(24),
    "Slack app token": "-".join(
        ["xapp", "1", "A02" + chars(8, string.ascii_uppercase), chars(12, string.digits), chars(64, HEX)]
    ),
    "Slack webhook": "https://hooks.slack" + ".com/services/T" + chars(8, UPPER32) + "/B" + chars(8, UPPER32) + "/" + chars(24),
    "Google API key": "AIza" + chars(35),
    "Google OAuth secret": "GOCSPX" + "-" + chars(28),
    "Google OAuth token": "ya29" + "." + chars(60),
    "Stripe live key": "sk" + "_live_" + chars(24),
    "Stripe test key": "rk" + "_test_" + chars(24),
    "Stripe webhook secret": "whsec" + "_" + chars(32),
    "RSA private key": "-----BEGIN RSA " + "PRIVATE KEY-----\nMIIE",
    "OpenSSH private key": "-----BEGIN OPENSSH " + "PRIVATE KEY-----\nb3Blbn",
    "PKCS8 private key": "-----BEGIN " + "PRIVATE KEY-----\nMIIE",
    "PGP private key": "-----BEGIN PGP " + "PRIVATE KEY BLOCK-----\n",
    "PuTTY key": "PuTTY-User-" + "Key-File-3: ssh-ed25519",
    "age key": "AGE-SECRET-" + "KEY-1" + chars(58, string.ascii_uppercase + string.digits),
    "OpenAI key": "sk" + "-" + chars(20) + "T3Blbk" + "FJ" + chars(20, seed=8),
    "OpenAI project key": "sk" + "-proj-" + chars(60),
    "Anthropic key": "sk" + "-ant-api03-" + chars(90),
    "npm token": "npm" + "_" + chars(36),
    "npmrc": "//registry.npmjs.org/:_auth" + "Token=" + chars(36),
    "PyPI token": "pypi" + "-AgEIcHlwaS5vcmc" + chars(70),
    "Hugging Face token": "hf" + "_" + chars(34, string.ascii_letters),
    "SendGrid key": "SG" + "." + chars(22) + "." + chars(43),
    "Mailgun key": "key" + "-" + chars(32, HEX),
    "Telegram token": chars(9, "123456789") + ":AA" + chars(33),
    "DigitalOcean token": "dop" + "_v1_" + chars(64, HEX),
    "Shopify token": "shpat" + "_" + chars(32, HEX),
    "Azure key": "AccountName=x;Account" + "Key=" + base64.b64encode(bytes(range(100, 164))).decode(),
    "memdir key": "md" + "_" + chars(43, URLSAFE),
    "JWT": "eyJ" + "hbGciOiJIUzI1NiJ9" + "." + "eyJ" + chars(20) + "." + chars(43),
    "bearer header": "Authorization: Bea" + "rer " + chars(40),
    "password in a URL": "postgres://app:" + chars(14) + "@db.internal:5432/app",
    "password without a user": "redis://:" + chars(14) + "@cache.internal:6379/0",
    "generic api key": 'api_key = "' + chars(32) + '"',
    "generic yaml": "client-secret: " + chars(32),
    "generic json": '{"accessToken": "' + chars(40) + '"}',
    "generic env": "MY_SECRET_KEY=" + chars(48),
    "generic hex token": "token: " + hashlib.sha256(b"x").hexdigest(),
    "plain password": "password: Sum" + "mer2024!",
    "password": "DB_PASSWORD='" + chars(20) + "!'",
    "short password": "password: hunter" + "2",
    "password in a sentence": "the database's password is correct" + "horse9",
    "key in a sentence": "the api key is " + chars(32),
    "long token": "aws_session_" + "token = " + chars(800),
    "curl": "curl -s -u admin:" + "hunter2 https://api.internal/v1",
    "curl over lines": "curl -s https://api.internal/v1 \\\n  -u admin:" + "S3cr3t!",
    "curl in quotes": "curl --user 'ci:" + "S3cr3t!' https://api.internal/v1",
    "mysql": "mysqldump -uroot -p" + "S3cr3tPw shop > shop.sql",
    "sshpass": "sshpass -p " + "hunter22 ssh root@host",
    "redis": "redis-cli -h cache -a " + "sup3rs3cr3t ping",
    "docker": "docker login -u bob -p " + "hunter22xyz registry.internal",
    "password option": "psql -U app --password " + "Xy9kkwq7",
    "netrc": "machine api.internal login me@host password " + "correcthorse",
    "cookie": "Cookie: theme=dark; sessionid=" + chars(32, HEX),
    "kubeconfig": "client-key-data: " + base64.b64encode(b"-----BEGIN RSA " + b"PRIVATE KEY-----\nMIIE").decode(),
    "curl with a plain word": "curl -u deploy:" + "tulip https://x.example/up",
    "AWS secret alone": "the aws secret is wJalrXUtnFEMI/" + "K7MDENG/bPxRfiCYzEKQMPLEKY",
    "Passwort": "Das Passwort ist " + "Kirschbaum",
    "Kennwort": "Kennwort = " + "blau99",
    "contraseña": "contraseña: " + "tortuga",
    "la contraseña": "La contraseña es " + "girasol7",
    "mot de passe": "Mot de passe : " + "tournesol",
    "пароль": "пароль: " + "ромашка7",
    "Пароль": "Пароль от сервера: " + "kotik",
    "senha": "senha: " + "abacaxi",
    "密码": "密码：" + "abc123xyz",
    "パスワード": "パスワード: " + "sakura77",
    "hasło": "hasło: " + "kotek5",
    "query password": "https://x.example/api?password=" + "tulpe77&u=1",
    "query token": "https://x.example/hook?u=1&token=" + "a8f3k2l9d0s8",
    "signed URL": "https://a.example/c?sv=2020&sig=" + "Zm9vYmFyYmF6cXV4cXV1eA%3D%3D",
    "PKCS8 body": "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7" + chars(40),
    "OpenSSH body": "b3BlbnNzaC1rZXktdjEAAAAABG5vbmUAAAAEbm9uZQAAAAAAAAABAAAAMwAAAAtzc2gt" + chars(20),
    "Ed25519 body": "MC4CAQAwBQYDK2VwBCIEI" + chars(43),
    "Discord webhook": "https://discord" + ".com/api/webhooks/" + chars(18, string.digits) + "/" + chars(68),
}

HARMLESS: dict[str, str] = {
    "prose": "The secret of a good password is length. The token of our friendship: a key to the city.",
    "placeholder": 'api_key = "your-api-key-goes-here-123456"',
    "variable": "password: ${DB_PASSWORD_FROM_VAULT_2024}",
    "call": "password = get_password2(user)",
    "form": "Password: see the note in the safe, page 12",
    "python": "token = settings.AUTH_TOKEN_PROVIDER.get_token2(request)",
    "environment": 'secret = os.environ["SECRET_KEY_2024_PRODUCTION"]',
    "path": "key: /etc/ssl/private/server-2024/name.key",
    "public key": "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI" + "x" * 30 + " me@host",
    "certificate": "-----BEGIN CERTIFICATE-----\nMIIE",
    "public block": "-----BEGIN PUBLIC KEY-----\nMIIE",
    "hash": "sha256 e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "uuid": "id: 123e4567-e89b-12d3-a456-426614174000",
    "url": "https://example.org/path?key=value&token=abc",
    "url with easy password": "postgres://postgres:password@localhost/app",
    "git remote": "ssh://git@host.example:2222/repo.git",
    "mail": "From: a@b.example\nKeywords: key, secret, password",
    "german": "Das Passwort steht im Tresor; der Schlüssel: beim Hausmeister (Raum 12)",
    "german, elsewhere": "Passwort: siehe Tresor; das Passwort wird per Post verschickt",
    "spanish": "La contraseña se cambia cada mes. Contraseña: pedirla a Ana",
    "french": "Le mot de passe est demandé à chaque fois; mot de passe : voir le coffre",
    "russian": "пароль меняется каждый месяц",
    "query": "https://x.example/search?q=token&page=2 and https://x.example/?sort=password",
    "certificate body": "MIIDdzCCAl+gAwIBAgIEAgAAuTANBgkqhkiG9w0BAQUFADBaMQswCQYDVQQGEwJJRTESMBAGA1UE",
    "csv": "name,token\nanna,none\nbert,none\n",
    "curl with placeholders": "curl -u $USER:$PASS, curl -u user:password, curl -u USER:API_TOKEN, curl -u alice https://x",
    "mysql that asks": "mysql -u root -p shop; mysql --port=3306 -h db1",
    "options of others beside mysql": "link the mysql client with -pthread, or docker run --name mysql -p3306:3306 mysql:8",
    "another command below mysql": "back up mysql\nthen run tar -pxzf Backup1.tgz",
    "words of a login page": "the machine learning login page password reset flow",
    "a port behind a login": "docker login first, then docker run -p 8080:80 nginx",
    "how passwords are kept": "The password is argon2id-hashed with cost 12; the token is rotated every 24h",
    "names of files": "access key rotation is scripts/rotate_access_keys_v2.py, the auth token src/auth/token_service2.py",
    "image": "data:image/png;base64," + base64.b64encode(bytes(range(256))).decode(),
    "commit id": "fixed in 9fceb02d0ae598e95dc970b74767f19372d61af8",
    "certificate of kubeconfig": "certificate-authority-data: "
    + base64.b64encode(b"-----BEGIN CERTIFICATE-----\nMIIE").decode(),
    "cookie of a manual": "The session cookie is httpOnly; Set-Cookie: session=<id>; Path=/",
    "commit": "Merge 4f2a9c1 into main: keyboard=shortcuts2024-and-more-words",
}


@pytest.mark.parametrize("kind", PLANTED)
def test_a_planted_secret_is_found_in_its_line(kind: str) -> None:
    content = f"# Notes\n\nsome text before\n{PLANTED[kind]}\nsome text after\n".encode()
    finding = scan_bytes(content)
    assert finding is not None
    assert finding.line == 4


@pytest.mark.parametrize("kind", PLANTED)
def test_a_finding_never_repeats_the_secret(kind: str) -> None:
    finding = scan_bytes(PLANTED[kind].encode())
    assert finding is not None
    assert PLANTED[kind][-10:] not in str(finding)


@pytest.mark.parametrize("kind", HARMLESS)
def test_ordinary_text_is_left_alone(kind: str) -> None:
    assert scan_bytes(HARMLESS[kind].encode()) is None


@pytest.mark.parametrize("codec", ["utf-16", "utf-16-le", "utf-16-be"])
def test_utf16_does_not_hide_a_secret(codec: str) -> None:
    mark = b"" if codec == "utf-16" else {"utf-16-le": b"\xff\xfe", "utf-16-be": b"\xfe\xff"}[codec]
    text = "first line\r\n" + PLANTED["GitHub personal token"] + "\r\n"
    finding = scan_bytes(mark + text.encode(codec))
    assert finding is not None
    assert finding.line == 2


def test_a_secret_in_binary_data_is_found() -> None:
    assert scan_bytes(b"\x00\x01\xff" * 1000 + b"\x00" + PLANTED["Stripe live key"].encode() + b"\x00") is not None


@pytest.mark.parametrize("offset", [-60, -40, -20, -1, 0, 1, 5000])
def test_a_secret_on_the_border_of_two_pieces_is_found(offset: int) -> None:
    """Pieces are 1 MiB long."""
    filler = b"an ordinary line\n" * 70_000
    content = filler[: 1024 * 1024 + offset] + b"\n" + PLANTED["GitHub personal token"].encode() + b"\nmore\n"
    finding = scan_stream(io.BytesIO(content))
    assert finding == SecretFinding(rule="GitHub token", line=content[: 1024 * 1024 + offset].count(b"\n") + 2)


def test_the_first_of_several_secrets_is_named() -> None:
    content = f"a\n{PLANTED['npm token']}\n{PLANTED['AWS access key id']}\n".encode()
    assert scan_bytes(content) == SecretFinding(rule="npm token", line=2)


@given(st.binary(max_size=3000))
def test_any_bytes_can_be_scanned(content: bytes) -> None:
    finding = scan_bytes(content)
    assert finding is None or finding.line is not None


def test_an_empty_file_has_no_secret() -> None:
    assert scan_bytes(b"") is None
    assert scan_stream(io.BytesIO(b"")) is None


@pytest.mark.parametrize(
    "path",
    [
        "id_rsa", ".ssh/id_ed25519", "deploy/server.pem", "cert.p12", "release.keystore", ".netrc", ".env",
        "app/.env.production", ".pgpass", ".git-credentials", ".aws/credentials", "home/.kube/config", "KEYS.PEM",
        "passwords.kdbx", ".htpasswd", ".docker/config.json", ".gnupg/private-keys-v1.d/x.key", ".envrc",
    ],
)  # fmt: skip
def test_names_that_hold_secrets_are_known(path: str) -> None:
    assert scan_name(path) is not None


@pytest.mark.parametrize(
    "path",
    [
        "id_rsa.pub",
        ".env.example",
        ".env.sample",
        "environment.md",
        "aws/credentials.md",
        "pem.txt",
        "config.json",
        "notes/key.md",
        "x\n.env.md",
    ],
)
def test_names_that_only_look_similar_are_left_alone(path: str) -> None:
    assert scan_name(path) is None


def test_entropy_is_shannon_s() -> None:
    assert entropy_bits(b"") == 0
    assert entropy_bits(b"aaaa") == 0
    assert entropy_bits(b"abcd") == 2
