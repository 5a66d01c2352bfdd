"""Which certificates are believed: the system's (or SSL_CERT_FILE's), those of a file that was named, or one alone."""

from __future__ import annotations

import ssl

from memdir.core.errors import UsageError


def context_for(*, ca_file: str = "", pinned_file: str = "") -> ssl.SSLContext:
    """For somebody's server (`ca_file` is believed beside the system's authorities), or for this user's own, whose certificate
    is known and needs no name that fits (`pinned_file`)."""
    try:
        if pinned_file:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.check_hostname = False
            context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
            context.load_verify_locations(cafile=pinned_file)
            return context
        context = ssl.create_default_context()
        if ca_file:
            context.load_verify_locations(cafile=ca_file)
    except (OSError, ssl.SSLError) as error:
        raise UsageError(
            f"the certificates in {pinned_file or ca_file} cannot be used: {error}", hint="it must be a PEM file"
        ) from error
    return context
