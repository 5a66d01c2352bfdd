"""`memdir memory store|search|list|show|stats`: an agent's memories from the command line."""

from __future__ import annotations

import argparse
import re
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, cast

from memdir.cli.command import EXIT_NOTHING, EXIT_OK, Command, Parser, bounded_int
from memdir.cli.memory.options import (
    NONE,
    add_container,
    add_project,
    checked_id,
    chosen_project,
    memories_of,
    project_name,
    tag_list,
    text_of,
    there,
    told_project,
)  # fmt: skip
from memdir.cli.text import plural, shortened, visible
from memdir.cli.times import past_moment
from memdir.core.errors import NotFoundError, UsageError
from memdir.core.weights import WEIGHT_MAX, parsed_weights

if TYPE_CHECKING:
    from memdir.agents.service import AgentMemories, Found, Hit, Memory
    from memdir.cli.output import Output

_LIMIT_MAX: Final = 100
_CLOSEST_MAX: Final = 3
"""Shown where nothing is found."""
_LINE_CHARS: Final = 100
_DAY: Final = re.compile(r"\d{4}-\d{2}-\d{2}")


def _tags(parser: Parser, text: str) -> None:
    parser.add_argument("-t", "--tag", "--tags", metavar="TAG", action="extend", type=tag_list, default=[], help=text)


def _weights(text: str) -> dict[str, float]:
    try:
        return parsed_weights(text)
    except UsageError as error:
        raise argparse.ArgumentTypeError(f"{error.message}{f' ({error.hint})' if error.hint else ''}") from None


def _line_of(memory: Memory) -> str:
    tags = f" [{', '.join(memory['tags'])}]" if memory["tags"] else ""
    text = " ".join(memory["content"].split())
    return visible(shortened(f"{memory['createdAt'][:10]} {memory['project'] or NONE}{tags} {text}", _LINE_CHARS + 40))


# store


def _configure_store(parser: Parser) -> None:
    parser.add_argument("text", metavar="TEXT", nargs="*", help="what to remember; '-' or nothing reads standard input")
    _tags(parser, "a tag, or several with commas; may be given several times")
    parser.add_argument("--redact", action="store_true", help="replace secrets in it; else a text that holds one is refused")
    parser.add_argument(
        "--supersedes", metavar="ID", action="append", type=checked_id, default=[], help="a memory that it takes the place of"
    )
    parser.add_argument(
        "--untrusted", action="store_true", help="learnt from what others wrote: no prompt gets it before you confirm it"
    )
    add_project(parser)
    add_container(parser)


def _store(args: argparse.Namespace, out: Output) -> int:
    from memdir.agents.service import stored_by

    text = text_of(args.text)
    if not text.strip():
        raise UsageError("there is nothing to remember", hint="memdir memory store 'what to remember'")
    secrets = "redact" if args.redact else "refuse"
    memories = memories_of(args, out)
    stored = memories.store(
        text, tags=args.tag, project=chosen_project(args, memories, remember=True), stored_by=stored_by(),
        trusted=not args.untrusted, supersedes=args.supersedes, secrets=secrets,
    )  # fmt: skip
    known = {one["id"]: one["similarity"] for one in stored["duplicates"]}
    if out.json:
        out.document(stored)
    else:
        for memory in stored["memories"]:
            out.line(f"{memory['id']}  {out.name(memory['path'])}")
        for memory_id, similarity in known.items():
            alike = "says the same" if similarity == 1 else f"says nearly the same ({similarity:.0%})"
            out.note(f"{memory_id} {alike} already and was kept")
        for one in stored["superseded"]:
            out.note(f"{one['id']} said before: {visible(shortened(' '.join(one['content'].split()), _LINE_CHARS))}")
        for memory in stored["memories"]:
            if memory["mayReplace"] and memory["id"] not in known:
                out.note(f"it may contradict {memory['mayReplace']}: `memdir memory review` asks which holds")
            if not memory["isTrusted"]:
                out.note(f"not trusted: given to no prompt before `memdir memory confirm {memory['id']}`")
        if stored["redacted"]:
            out.note(f"replaced: {', '.join(stored['redacted'])}")
    return EXIT_OK


# search


def _configure_search(parser: Parser) -> None:
    parser.add_argument("query", metavar="QUERY", nargs="+", help="what to look for")
    parser.add_argument(
        "-k", dest="limit", metavar="N", type=bounded_int(1, _LIMIT_MAX), default=5, help="at most N memories (default: 5)"
    )
    _tags(parser, "memories with this tag rank higher; several with commas, or several times")
    parser.add_argument("--only-project", action="store_true", help="leave memories of other projects out")
    parser.add_argument("--only-tags", action="store_true", help="leave memories without any of the tags out")
    parser.add_argument("--threshold", metavar="SCORE", type=_share, help="all that match and score so much, 0 to 1")
    parser.add_argument(
        "--weights", metavar="NAME=NUMBER,…", type=_weights, help=f"of the signals: {', '.join(WEIGHT_MAX)}; the others stay"
    )
    parser.add_argument("--words", action="store_true", help="by words alone, without the server's model")
    _kinds(parser)
    parser.add_argument("--explain", action="store_true", help="show the five signals of each memory")
    add_project(parser)
    add_container(parser)


def _share(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number") from None
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError(f"{text} is not between 0 and 1")
    return value


def _day(text: str) -> datetime:
    """An argparse type: a moment that is over. A day means its end: what began on it is so."""
    moment = past_moment(text)
    is_day = _DAY.fullmatch(text.strip()) is not None
    return moment + timedelta(days=1, seconds=-1) if is_day else moment


def _kinds(parser: Parser) -> None:
    parser.add_argument(
        "--kind", choices=("note", "fact"), help="only notes, which somebody stored, or only facts, which were read in files"
    )
    parser.add_argument(
        "--at", metavar="WHEN", type=_day, help="facts as they were on a day: 2026-03-01, 'yesterday', '2w ago'"
    )


def _search(args: argparse.Namespace, out: Output) -> int:
    query = " ".join(args.query)
    if not query.strip():
        raise UsageError("there is nothing to look for", hint="give the words that a memory may hold")
    memories = memories_of(args, out)
    found: Found = {"results": [], "closest": [], "terms": [], "tookMs": 0.0}
    if args.kind != "fact" and args.at is None:
        found = memories.search(
            query,
            project=chosen_project(args, memories),
            tags=args.tag,
            only_project=args.only_project,
            only_tags=args.only_tags,
            limit=args.limit,
            threshold=args.threshold,
            semantic=not args.words,
            weights=args.weights,
        )
    notes = found["results"]
    narrowed = args.only_tags or args.only_project or args.words
    facts = [] if args.kind == "note" or narrowed else _facts(args, memories, q=query, limit=args.limit)
    shown_paths = {hit["memory"]["path"] for hit in notes}
    facts = [fact for fact in facts if not all(source["path"] in shown_paths for source in fact["sources"])]
    least = args.threshold or 0.0
    ranked: list[tuple[float, Hit | dict[str, Any]]] = [(hit["score"], hit) for hit in notes]
    ranked += [(fact["score"], fact) for fact in facts if fact["score"] >= least]
    ranked = sorted(ranked, key=lambda one: -one[0])[: args.limit if args.threshold is None else None]
    if out.json:
        shown = [one for _, one in ranked]
        kept = [hit for hit in notes if hit in shown]
        out.document({**found, "results": kept, "facts": [fact for fact in facts if fact in shown]})
        return EXIT_OK if ranked else EXIT_NOTHING
    for number, (_, one) in enumerate(ranked, 1):
        if "memory" in one:
            _show_hit(number, cast("Hit", one), args.explain, out)
        else:
            _show_fact_hit(number, one, out)
    if args.explain:
        out.note(f"searched for {' '.join(found['terms'])} in {found['tookMs']:.1f} ms")
    if not ranked:
        from memdir.cli.memory.facts import facts_here

        elsewhere = "; what files of a mount say is found inside it, or with --container NAME"
        out.note(f"no memory says something about this{elsewhere if facts_here(args.container) is None else ''}")
        for hit in found.get("closest", [])[:_CLOSEST_MAX]:  # an older server sends none
            out.note(f"closest: {visible(' '.join(hit['memory']['content'].split()))}  {hit['memory']['id']}")
    return EXIT_OK if ranked else EXIT_NOTHING


def _facts(args: argparse.Namespace, memories: AgentMemories, **wanted: str | int | None) -> list[dict[str, Any]]:
    """Of the memory that you are in, or that is named; else those of the agents' own container."""
    from memdir.cli.memory.facts import FactsAt, facts_here

    container = facts_here(args.container) or memories.container
    return FactsAt(server=memories.server, container=container).find(at=args.at, **wanted)


def _show_fact_hit(number: int, fact: dict[str, Any], out: Output) -> None:
    from memdir.cli.memory.facts import place_of_source, span

    head = visible(f"{number}. {span(fact)} fact")
    score = "" if fact["score"] is None else f"  {fact['score']:.3f}"
    out.line(f"{out.style(head, 'bold')}{score}  {place_of_source(fact['sources'][0], out)}")
    out.line(f"   {visible(fact['text'])}")


def _show_hit(number: int, hit: Hit, explain: bool, out: Output) -> None:
    memory = hit["memory"]
    tags = f" [{', '.join(memory['tags'])}]" if memory["tags"] else ""
    head = visible(f"{number}. {memory['createdAt'][:10]} {memory['project'] or NONE}{tags}")
    doubt = "" if memory["isTrusted"] else f"  {out.style('not trusted', 'warn')}"
    out.line(f"{out.style(head, 'bold')}  {hit['score']:.3f}  {memory['id']}{doubt}")
    if explain:
        signals = "  ".join(f"{name} {value:.4f}" for name, value in hit["signals"].items() if value is not None)
        out.line(f"   {signals}  (bm25 {hit['bm25Raw']:.4f}; {visible(', '.join(hit['matched']))})")
    for line in memory["content"].split("\n"):
        out.line(f"   {visible(line)}")


# list, show


def _configure_list(parser: Parser) -> None:
    parser.add_argument("-n", "--limit", metavar="N", type=bounded_int(1, 10_000), default=20, help="at most N (default: 20)")
    parser.add_argument("-t", "--tag", metavar="TAG", help="only those with this tag")
    parser.add_argument(
        "--project", metavar="NAME", type=project_name, help=f"only those of this project, '{NONE}': of none (default: of all)"
    )
    parser.add_argument("--subject", metavar="NAME", help="only facts of somebody or something: 'Ana Ruiz', user")
    _kinds(parser)
    add_container(parser)


def _list(args: argparse.Namespace, out: Output) -> int:
    from itertools import islice

    from memdir.cli.memory.facts import place_of_source, span

    memories = memories_of(args, out)
    notes: list[Memory] = []
    if args.kind != "fact" and args.at is None and args.subject is None:
        notes = list(islice(memories.all(project=told_project(args.project), tag=args.tag), args.limit))
    facts: list[dict[str, Any]] = []
    if args.kind != "note" and args.project is None and args.tag is None:
        facts = _facts(args, memories, subject=args.subject, limit=args.limit)
        paths = {memory["path"] for memory in notes}
        facts = [fact for fact in facts if not all(source["path"] in paths for source in fact["sources"])]
        facts = facts[: args.limit - len(notes)]
    if out.json:
        out.document([*notes, *facts])
    else:
        for memory in notes:
            out.line(f"{memory['id']}  {_line_of(memory)}")
        for fact in facts:
            text = visible(shortened(f"{span(fact)} fact {fact['text']}", _LINE_CHARS + 40))
            out.line(f"{fact['id']}  {text}  {place_of_source(fact['sources'][0], out)}")
        if not notes and not facts:
            out.note("there are no memories")
    return EXIT_OK if notes or facts else EXIT_NOTHING


def _configure_show(parser: Parser) -> None:
    parser.add_argument("id", metavar="ID", type=checked_id, help="the id, as `memdir memory list` shows it")
    add_container(parser)


def _show(args: argparse.Namespace, out: Output) -> int:
    from memdir.cli.memory.facts import fact_of_id, show_fact

    memories = memories_of(args, out)
    try:
        memory = there(lambda: memories.get(args.id))
    except NotFoundError:
        fact = fact_of_id(args.id, args.container, memories.container, memories.server)
        if fact is None:
            raise
        if out.json:
            out.document(fact)
        else:
            show_fact(fact, out)
        return EXIT_OK
    if out.json:
        out.document(memory)
        return EXIT_OK
    rows: list[tuple[str, Any]] = [
        ("id", memory["id"]), ("path", memory["path"]), ("project", memory["project"] or NONE),
        ("tags", ", ".join(memory["tags"]) or NONE), ("created", memory["createdAt"]), ("updated", memory["updatedAt"]),
        ("accesses", memory["accessCount"]), ("stored by", memory["storedBy"]),
        ("trusted", "yes" if memory["isTrusted"] else "no"),
        ("confirmed", memory["confirmedAt"] or NONE), ("said", plural(memory["seen"], "time")),
    ]  # fmt: skip
    for name, value in rows:
        out.line(f"{name + ':':<11}{visible(str(value))}")
    out.line()
    for line in memory["content"].split("\n"):
        out.line(visible(line))
    return EXIT_OK


# stats


def _stats(args: argparse.Namespace, out: Output) -> int:
    stats = memories_of(args, out).stats()
    if out.json:
        out.document(stats)
        return EXIT_OK if stats["memories"] else EXIT_NOTHING
    out.line(f"memories:  {stats['memories']:,}, about {stats['tokens']:,} tokens in {stats['sizeBytes']:,} bytes")
    out.line(f"index:     {stats['indexBytes']:,} bytes in the server's memory")
    if stats["memories"]:
        out.line(f"from:      {stats['oldestAt'][:10]} to {stats['newestAt'][:10]}")
    projects = [f"{row['project'] or NONE} {row['count']:,}" for row in stats["projects"]]
    out.line(f"projects:  {visible(', '.join(projects[:20]) or NONE)}")
    tags = [f"{row['tag']} {row['count']:,}" for row in stats["tags"]]
    out.line(f"tags:      {visible(', '.join(tags[:20]) or NONE)}")
    if len(projects) > 20:
        out.note(f"{plural(len(projects) - 20, 'project')} more: --json shows all")
    return EXIT_OK if stats["memories"] else EXIT_NOTHING


_ID: Final = "01JD3Y6T0V8Q9W3N5K7M1P2R4S"
STORE = Command(
    name="memory store",
    usage="[OPTIONS] [TEXT ...]",
    description=(
        "Remember something: a Markdown file under /memory/PROJECT/ in every mount of the container, found by the next\n"
        "search. A long text is cut into pieces of 512 tokens. What is (nearly) there already is not stored twice."
    ),
    examples=[
        ("memdir memory store -t auth 'Auth uses JWT with RS256'", "for the project of this folder"),
        ("git log -1 --format=%B | memdir memory store -t release", "from standard input"),
    ],
    exit_codes=[(0, "it is remembered")],
    configure=_configure_store,
    run=_store,
)
SEARCH = Command(
    name="memory search",
    usage="[OPTIONS] QUERY ...",
    description=(
        "Find what is remembered: notes that you or an agent stored, by words, meaning, recency, use, tags and project\n"
        "(docs/agent-memory.md; those of this folder's project rank higher), and facts that were read in the files of the\n"
        "memory you are in, with the lines that say them. With --at: what was so on a day."
    ),
    examples=[
        ("memdir memory search login bug", "the five best"),
        ("memdir memory search --at 2026-03-01 where does Ana live", "in a mount: as it was on that day"),
        ("memdir memory search --explain -k 10 db schema", "with the five numbers of each"),
    ],
    exit_codes=[(0, "something was found"), (1, "nothing was found")],
    configure=_configure_search,
    run=_search,
)
LIST = Command(
    name="memory list",
    usage="[OPTIONS]",
    description="List memories: notes, newest first, then facts that were read in files, the most important first.",
    examples=[
        ("memdir memory list --project my-saas", "id, day, project, tags, text"),
        ("memdir memory list --kind fact --subject 'Ana Ruiz'", "in a mount: what is known of somebody"),
        ("memdir memory list -t auth --json", "whole, for programs"),
    ],
    exit_codes=[(0, "there are some"), (1, "there are none")],
    configure=_configure_list,
    run=_list,
)
SHOW = Command(
    name="memory show",
    usage="[OPTIONS] ID",
    description=(
        "Show one memory. Of a note its text, tags, project, times, and the file that it is; of a fact the lines that say it,\n"
        "since when it is so, and what was so before."
    ),
    examples=[(f"memdir memory show {_ID}", "text, tags, times, and where its file is")],
    exit_codes=[(0, "it is there"), (2, "there is no such memory, or another error")],
    configure=_configure_show,
    run=_show,
)
STATS = Command(
    name="memory stats",
    usage="[OPTIONS]",
    description="Show how much is remembered, in which projects, with which tags.",
    examples=[("memdir memory stats", "numbers"), ("memdir memory stats --json", "for programs")],
    exit_codes=[(0, "there are memories"), (1, "there are none")],
    configure=add_container,
    run=_stats,
)
