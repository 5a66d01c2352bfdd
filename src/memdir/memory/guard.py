"""What never becomes a memory: instructions to a model, and secrets.

A memory is read by agents as truth about their user, so text that gives orders, wherever it stands, is refused; a false refusal
costs one line of the profile, a false acceptance steers every later session.
"""

from __future__ import annotations

import re
from typing import Final

from memdir.core.caseless import Caseless
from memdir.core.secrets import scan_bytes

_OVERRIDING: Final = (
    r"\b(?:ignore|disregard|forget|override|bypass)\b[^.\n]{0,60}\b(?:instructions?|prompts?|rules?|messages?|guidelines?|"
    r"directions?|everything|above|previous|prior|profile|said before|told before)\b"
)
_OVERRIDES: Final = Caseless(_OVERRIDING)
_INSTRUCTION: Final = Caseless(
    _OVERRIDING
    + r"|^\W*override\b|^\W*(?:(?:new|important|urgent) )*(?:system|developer|admin) (?:update|message|notice|override|"
    r"instruction|prompt)s?\b"
    r"|\b(?:previous|prior|above|earlier) instructions?\b"
    r"|\bsystem prompt\b|\bjailbreak\b|\bdeveloper mode\b|\bdo anything now\b"
    r"|\bremember (?:that )?you (?:must|should|will|are|have|can|need)\b"
    r"|\b(?:from now on|henceforth|going forward),? (?:you|always|never|only|respond|answer|act)\b"
    r"|\byou (?:must|are now|will now|should now|have to|shall)\b"
    r"|\b(?:act|behave|respond|reply|answer|pretend) (?:as|like) (?:if|though|an?|the)\b"
    r"|\b(?:as|dear) (?:an )?(?:ai|assistant|language model|llm)\b"
    r"|\b(?:do not|don't|never) (?:tell|reveal|mention|inform|alert|warn|show) (?:the |this to (?:the )?|it to (?:the )?)?"
    r"(?:user|human|anyone|owner)\b"
    r"|\b(?:send|post|upload|forward|exfiltrate|email|leak)\b[^.\n]{0,60}\b(?:passwords?|secrets?|credentials?|api keys?"
    r"|tokens?|private keys?|ssh keys?)\b"
    r"|<\s*/?\s*(?:system|assistant|user|instructions?|im_start|im_end)\b|\[/?inst\]|<\|"
    r"|^\s*(?:system|assistant|human|ai)\s*:"
    r"|\b(?:ignoriere|vergiss|missachte)\b[^.\n]{0,60}\b(?:anweisung|regel|vorherig)|\b(?:ignorez?|oubliez?)\b[^.\n]{0,60}\binstructions?\b"
    r"|\b(?:ignora|olvida)\b[^.\n]{0,60}\binstrucciones\b|忽略.{0,12}(?:指示|指令)|(?:以前|これまで)の指示",
)
_ADDRESSED: Final = Caseless(
    r"^\W*(?:instructions?|prompt)\s*:"
    r"|^\W*(?:(?:hey|hi|hello|dear|ok|okay|please)[, ]+)?(?:assistant|ai|agents?|claude|chatgpt|gpt|copilot|gemini|codex|llm|"
    r"chatbot)\s*[,:!]"
    r"|\bnotes? (?:to|for) (?:all |every |any )?(?:future )?(?:ai |coding )?(?:agents?|assistants?|models?|llms?)\b"
    r"|\b(?:add|save|store|write|commit|put|record|keep)\b[^.\n]{0,30}\b(?:as|to|in|into) (?:a |your |the )?"
    r"(?:long-term |persistent )?memor(?:y|ies)\b|\bupdate (?:your|the) (?:memory|memories|profile)\b"
    r"|\b(?:for|in) (?:all )?(?:future|later|further) (?:sessions?|conversations?|chats?)\b"
)
"""To a model, by whoever wrote a text: what is asked to be believed or kept."""
_SECRET: Final = Caseless(
    r"-----begin [a-z ]*private key"
    r"|\b(?:akia|asia)[0-9a-z]{16}\b"
    r"|\b(?:gh[pousr]_|github_pat_|glpat-|xox[abprs]-|sk-|sk_live_|rk_live_|pk_live_|aiza|hf_|npm_|pypi-|md_|ya29\.)[a-z0-9_\-]{12,}"
    r"|\beyj[a-z0-9_-]{10,}\.[a-z0-9_-]{10,}"
    r"|\b[a-z][a-z0-9+.-]*://[^\s/:@]+:[^\s/@]+@"
    r"|\b(?:pass(?:word|wd|phrase|code)?|pwd|passwort|kennwort|contraseña|mot de passe|secret"
    r"|api[ _-]?key|access[ _-]?key"
    r"|auth[ _-]?token|token|bearer|pin(?: code)?|private[ _-]?key|client[ _-]?secret)\b\s*(?:is|ist|es|est|[:=])\s*\S+",
)
_LONG_TOKEN: Final = re.compile(r"[A-Za-z0-9+/_=-]{32,}")
_CARD: Final = re.compile(r"\b(?:\d[ -]?){12,18}\d\b")


def is_instruction(text: str) -> bool:
    """Text that tells a model what to do instead of stating something."""
    return _INSTRUCTION.search(text) is not None


def is_for_model(text: str) -> bool:
    """The same, and text that asks a model to keep something."""
    return is_instruction(text) or _ADDRESSED.search(text) is not None


def is_overriding(text: str) -> bool:
    """An instruction to believe nothing but what follows."""
    return _OVERRIDES.search(text) is not None


def is_secret(text: str) -> bool:
    """Text that holds a key, a password, a token or a card number."""
    if _SECRET.search(text) is not None or scan_bytes(text.encode("utf-8", "replace")) is not None:
        return True
    if any(_is_random(found) for found in _LONG_TOKEN.findall(text)):
        return True
    return any(_luhn(found) for found in _CARD.findall(text))


def _is_random(token: str) -> bool:
    """Digits mixed with letters throughout: a key or a hash, not a long word or a path."""
    digits = sum(char.isdigit() for char in token)
    letters = sum(char.isalpha() for char in token)
    return digits >= 6 and letters >= 6 and token.count("-") + token.count("_") + token.count("/") < 4


def _luhn(number: str) -> bool:
    """The check digit of payment cards (ISO/IEC 7812-1)."""
    digits = [int(char) for char in number if char.isdigit()]
    if not 13 <= len(digits) <= 19 or len(set(digits)) < 2:
        return False
    total = 0
    for position, digit in enumerate(reversed(digits)):
        doubled = digit * 2 if position % 2 else digit
        total += doubled - 9 if doubled > 9 else doubled
    return total % 10 == 0
