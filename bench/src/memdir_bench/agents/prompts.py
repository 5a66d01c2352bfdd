"""What people type around a question, and what they ask that has nothing to do with any memory.

Of each pair the first half was in view when the search was fitted; the second, `held`, was not.
"""

from __future__ import annotations

from typing import Final

ABSENT: Final = """
kubernetes helm chart|kafka partitions|terraform remote state|graphql federation|cassandra compaction|ansible playbook
saml single sign-on|zookeeper quorum|flutter hot reload|unity shaders|fpga bitstream|ldap groups|grpc deadlines
nginx upstream|mqtt retained topics|airflow dags|spark executors|jupyter notebooks|puppet manifests|svelte transitions
cuda streams|dnssec rollover|wireguard tunnels|print spooler|barcode scanner|oauth consent|blockchain wallet|wasm threads
snowflake warehouse|rabbitmq exchange|podman rootless|fortran bindings|bluetooth pairing|varnish purge|cobol copybooks
neo4j cypher|influxdb buckets|jenkins agents|selenium grid|solr synonyms
"""
NEGATIVE: Final = (
    "{absent}",
    "how do we configure {absent}",
    "why did {absent} fail last week",
    "what did we decide about {absent}",
)
SHARING: Final = (
    (
        "which command runs {absent} in CI",
        "bug in {absent} after a deploy",
        "{absent} setting in .env",
        "the user wants {absent} for customers",
        "add {absent} to the app",
    ),
    (
        "where is {absent} configured",
        "{absent}: cause and fix of the bug",
        "run {absent} in the build",
        "customers say that {absent} is slow",
        "which file has the test of {absent}",
    ),
)
"""Words that many memories have, about what none of them is about."""
EVERYDAY: Final = (
    """
write a haiku about autumn leaves
translate good morning into Portuguese
convert 30 miles to kilometres
rename this variable to something clearer
thanks, that looks good
yes please go ahead
continue
reverse a linked list in C
how many days until Christmas
why is my laptop fan so loud
summarise this article about volcanoes
plan a birthday party for ten children
which train goes to Hamburg on Sunday
what is the difference between a list and a tuple
can you make this paragraph shorter
what does this function return
the indentation is wrong in line 40
open the file and read the first ten lines
how do I exit vim
print hello world in Fortran
tell me a joke about programmers
is it going to rain tomorrow in Lisbon
how do I boil an egg
recommend a novel by a Norwegian author
solve x squared minus nine equals zero
""",
    """
compose a limerick about a lighthouse
how far away is the moon
translate this letter into Finnish
great, now do the same for the other one
ok, commit it
stop
what is the time complexity of quicksort
who painted the Mona Lisa
draft an apology to my landlord about the broken window
how long does sourdough take to rise
draw an ASCII picture of a cat
undo the last change
move this method to the bottom of the class
add a docstring to the constructor
why does my screen flicker
what should I cook with aubergines
list the planets by their mass
is a tomato a fruit
find the shortest path in a maze
extract this expression into a local constant
remove the unused imports at the top
what is the plural of octopus
give me three names for a golden retriever
do it again but with five columns
which side of the road do people drive on in Malta
""",
)
CHATTER: Final = (
    (
        "Good morning! I had a long weekend and I am still catching up with everything that piled up.",
        "My colleague from the other office called me yesterday evening, and we talked for an hour about what comes next.",
        "The weather was awful, so the train was late and I missed half of the meeting anyway.",
        "There is a person from marketing who keeps asking when all of this will be ready, and I do not know what to answer.",
        "I would like us to go slowly, step by step, and talk about it before you touch anything.",
        "Somebody suggested that we throw everything away and start over, which I think is a bad idea.",
        "We have about three days left, maybe four when nothing else happens.",
        "Please keep your answers short, I read them on my phone most of the time.",
        "I looked at it for a while last night and I could not see what was wrong with it.",
        "Maybe you notice something that I did not; a fresh pair of eyes is often worth a lot.",
        "By the way, lunch was great, thanks for the recommendation.",
        "Let me know if anything is unclear, I am around until six.",
    ),
    (
        "Hi there, hope you are doing fine; I am back from vacation and trying to remember where I left off.",
        "Before we begin, a bit of background so that you understand why I am asking at all.",
        "Our boss wants a demonstration on Thursday, and two people of the team are ill this week.",
        "I already spent the whole morning reading old notes and got nowhere with them.",
        "It is possible that I misunderstood the whole thing from the very beginning.",
        "In an earlier conversation you told me something useful, but I cannot find it any more.",
        "The coffee machine is broken again, so forgive me if I sound a little grumpy.",
        "One more thing: do not rewrite large parts of it, small changes are easier to review for me.",
        "If you have doubts, stop and ask me instead of guessing wildly.",
        "I promised an answer to the customer by tomorrow noon, so there is some pressure.",
        "Afterwards I would love to take a walk, because I have been sitting here since seven.",
        "That is all for now, thank you very much in advance for your patience.",
    ),
)
"""Sentences around one question in a long prompt."""
