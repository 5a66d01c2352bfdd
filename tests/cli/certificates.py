"""An authority of our own, and a certificate for a server on this machine."""

from __future__ import annotations

import datetime
import ipaddress
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

_DAY = datetime.timedelta(days=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificates:
    """PEM files."""

    ca: Path
    cert: Path
    key: Path


def make(folder: Path, *, address: str = "127.0.0.1") -> Certificates:
    """A fresh authority and a server's certificate that it signed for `address`."""
    now = datetime.datetime.now(datetime.UTC)
    ca_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    ca_name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "our own authority")])
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "memdir")])

    def begun(subject: x509.Name, public: ec.EllipticCurvePublicKey) -> x509.CertificateBuilder:
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(ca_name)
            .public_key(public)
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - _DAY)
            .not_valid_after(now + _DAY)
        )

    identifier = x509.SubjectKeyIdentifier.from_public_key(ca_key.public_key())
    usage = x509.KeyUsage(
        digital_signature=True, key_cert_sign=True, crl_sign=True, content_commitment=False, key_encipherment=False,
        data_encipherment=False, key_agreement=False, encipher_only=False, decipher_only=False,
    )  # fmt: skip
    ca = (
        begun(ca_name, ca_key.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(identifier, critical=False)
        .sign(ca_key, hashes.SHA256())
    )
    names = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(address))])
    cert = (
        begun(name, key.public_key())
        .add_extension(names, critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key()), critical=False)
        .sign(ca_key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    made = Certificates(ca=folder / "ca.pem", cert=folder / "cert.pem", key=folder / "key.pem")
    made.ca.write_bytes(ca.public_bytes(pem))
    made.cert.write_bytes(cert.public_bytes(pem) + ca.public_bytes(pem))
    plain = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    made.key.write_bytes(plain)
    return made
