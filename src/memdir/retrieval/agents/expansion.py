"""Abbreviations of developers and what they stand for, both ways: surface forms that share no stem.

Small on purpose: each further word of a query is a further chance of noise. It fires for exactly the abbreviation or
exactly the full word, before stemming. A verb of two words ("log in") counts as the noun that is made of it, too.
"""

from __future__ import annotations

from typing import Final

_TABLE: Final = """
admin administrator administration
app application
arg argument
async asynchronous
attr attribute
auth authentication login
authz authorization permission
billing payment invoice
btn button
cmd command
col column
config configuration
conn connection
ctx context
db database
deploy deployment
deps dependency dependencies
dev development developer
dir directory folder
docs documentation
env environment
err error
exec execute execution
fmt format formatting
fn function
func function
img image
impl implementation
info information
infra infrastructure
init initialization initialize
js javascript
k8s kubernetes
lib library
login auth authentication signin
max maximum
mgmt management
min minimum
msg message
num number
obj object
param parameter
perf performance
pg postgres postgresql
pkg package
pr pull
prod production
prefs preferences
pwd password
py python
ref reference
regex regexp
repo repository
req request
resp response
rm remove delete
spec specification
src source
svc service
tmp temporary
ts typescript
tx transaction
txn transaction
usr user
util utility
var variable
ver version
ws websocket
"""


_VERBS: Final = frozenset(
    ("backup", "checkout", "cleanup", "login", "logout", "rollback", "rollout", "setup", "signin", "signup", "timeout")
)


def _both_ways() -> dict[str, tuple[str, ...]]:
    found: dict[str, dict[str, None]] = {}
    for line in _TABLE.split("\n"):
        short, *words = line.split() or [""]
        for word in words:
            found.setdefault(short, {})[word] = None
            found.setdefault(word, {})[short] = None
    return {word: tuple(others) for word, others in found.items()}


EXPANSIONS: Final = _both_ways()


def expand(word: str, following: str = "") -> tuple[str, ...]:
    """The folded word, and what it abbreviates or is abbreviated to; `following`: the word behind it."""
    joined = word + following
    verb = (joined, *EXPANSIONS.get(joined, ())) if following and joined in _VERBS else ()
    return (word, *EXPANSIONS.get(word, ()), *verb)
