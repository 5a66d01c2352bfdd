"""All sessions together: what somebody usually does, how sure that is, in which modes, and when it was otherwise.

A pure function of the set of engrams: their order does not matter, and without a session the result is as if it had never been.
Tiers are those of FileGram's Table 8 (left, middle, right), each by one rule over one number, which is shown beside it.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

from memdir.traces.engram import EXTENDED, FEATURES, Engram

EPSILON: Final = 1e-6
TAU: Final = 1.5
MODES_MAX: Final = 3
MODES_SESSIONS_MAX: Final = 2_000
ROBUST_MIN: Final = 3.5
"""Of the modified z-score (Iglewicz and Hoaglin, 1993)."""
_MAD: Final = 0.6745
_MEAN_AD: Final = 1.2533
"""What make standard deviations of the median and of the mean absolute deviation of normal numbers: there too."""
_MODE_GAIN: Final = 0.25
"""By how much more modes must lower the distance to their middles, or there is one."""
Values = npt.NDArray[np.float64]
Tier = str
"""`L`, `M` or `R`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attribute:
    """One of Table 8: its dimension, the names of its tiers, the number it is told by, and how."""

    name: str
    dimensions: str
    tiers: tuple[str, str, str]
    number: str
    rule: Callable[[Mapping[str, float]], Tier]


def _from_left(number: str, left: float, right: float) -> Callable[[Mapping[str, float]], Tier]:
    """L from `left` on, R up to `right`."""
    return lambda values: "L" if values[number] >= left else "R" if values[number] <= right else "M"


def _reading(values: Mapping[str, float]) -> Tier:
    if values["search_ratio"] >= max(0.15, values["browse_ratio"]):
        return "M"
    return "R" if values["browse_ratio"] >= 0.4 else "L"


def _editing(values: Mapping[str, float]) -> Tier:
    if values["small_edit_ratio"] >= 0.6 and values["total_edits"] >= 2:
        return "L"
    return "R" if values["avg_lines_changed"] >= 30 else "M"


def _modality(values: Mapping[str, float]) -> Tier:
    if values["image_files"] >= 1:
        return "L"
    return "M" if values["md_table_rows"] >= 1 or values["structured_files"] >= 1 else "R"


def _versions(values: Mapping[str, float]) -> Tier:
    if values["versioned_ratio"] >= 0.2:
        return "L"
    return "M" if values["backup_ratio"] >= 0.1 else "R"


def _attribute(
    name: str, dimensions: str, tiers: tuple[str, str, str], number: str, rule: Callable[[Mapping[str, float]], Tier]
) -> Attribute:
    return Attribute(name=name, dimensions=dimensions, tiers=tiers, number=number, rule=rule)


def _tone(values: Mapping[str, float]) -> Tier:
    return "R" if values["casual_density"] >= 8 else "L" if values["casual_density"] < 0.5 else "M"


def _rhythm(values: Mapping[str, float]) -> Tier:
    return "R" if values["burstiness"] >= 0.5 else "L" if values["burstiness"] <= 0.1 else "M"


ATTRIBUTES: Final = (
    _attribute("reading_strategy", "A", ("sequential deep", "search-first", "breadth-first"), "browse_ratio", _reading),
    _attribute(
        "thoroughness", "A", ("exhaustive", "selective", "minimal"), "revisit_ratio", _from_left("revisit_ratio", 0.3, 0.05)
    ),
    _attribute("tone", "B", ("formal, academic", "professional", "casual"), "casual_density", _tone),
    _attribute(
        "output_detail",
        "B",
        ("comprehensive", "balanced", "concise"),
        "avg_output_length",
        _from_left("avg_output_length", 3000, 800),
    ),
    _attribute(
        "output_structure",
        "B",
        ("highly structured", "moderate", "free-form"),
        "structure_density",
        _from_left("structure_density", 6, 1.5),
    ),
    _attribute(
        "documentation",
        "B",
        ("extensive", "moderate", "minimal"),
        "documentation_ratio",
        _from_left("documentation_ratio", 0.25, 0.0),
    ),
    _attribute(
        "directory_style",
        "C",
        ("nested, 3+ levels", "adaptive, 1-2", "flat, root only"),
        "max_dir_depth",
        _from_left("max_dir_depth", 3, 0),
    ),
    _attribute("naming", "C", ("systematic", "semi-structured", "ad-hoc"), "named_ratio", _from_left("named_ratio", 0.8, 0.4)),
    _attribute(
        "version_strategy", "CD", ("explicit v1/v2", "backup copies", "in-place overwrite"), "versioned_ratio", _versions
    ),
    _attribute("edit_strategy", "D", ("incremental edits", "balanced", "bulk rewrite"), "small_edit_ratio", _editing),
    _attribute(
        "error_handling",
        "D",
        ("cautious, backup", "selective backup", "direct, no backup"),
        "backup_ratio",
        _from_left("backup_ratio", 0.3, 0.0),
    ),
    _attribute(
        "revision_depth", "D", ("multi-pass", "two-pass", "single-pass"), "edits_per_file", _from_left("edits_per_file", 3, 1.2)
    ),
    _attribute("working_style", "E", ("phased, methodical", "pragmatic", "burst-mode"), "burstiness", _rhythm),
    _attribute(
        "cleanup_policy",
        "E",
        ("aggressive cleanup", "periodic archival", "never delete"),
        "delete_to_create",
        _from_left("delete_to_create", 0.3, 0.0),
    ),
    _attribute("cross_modal", "F", ("visual-heavy", "balanced", "text-only"), "image_files", _modality),
    _attribute(
        "output_modality",
        "F",
        ("multi-format", "dual-format", "single-format"),
        "output_types",
        _from_left("output_types", 3, 1),
    ),
)
DIMENSIONS: Final[Mapping[str, tuple[str, str]]] = {
    "A": ("Consumption pattern", "reading_strategy"), "B": ("Production style", "output_detail"),
    "C": ("Organisation preference", "directory_style"), "D": ("Iteration strategy", "edit_strategy"),
    "E": ("Curation", "cleanup_policy"), "F": ("Cross-modal behaviour", "cross_modal"),
}  # fmt: skip
"""Each dimension is what its one attribute says, here and wherever it is told, simulated or judged."""
_BY_NAME: Final = {attribute.name: attribute for attribute in ATTRIBUTES}
_DIMENSION_FEATURES: Final[Mapping[str, tuple[str, ...]]] = {
    "A": ("search_ratio", "browse_ratio", "revisit_ratio"), "B": ("avg_output_length", "files_created", "total_output_chars"),
    "C": ("dirs_created", "max_dir_depth", "files_moved"), "D": ("total_edits", "avg_lines_changed", "small_edit_ratio"),
    "E": ("total_deletes", "delete_to_create"), "F": ("structured_files", "md_table_rows", "image_files"),
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Trait:
    """What is usual: the tier that the middle of the numbers falls into. `agreeing` sessions of `sessions` that tell anything
    fall into it by themselves."""

    attribute: Attribute
    tier: Tier
    value: float
    """The median of the attribute's number over the sessions that tell."""
    agreeing: tuple[str, ...]
    sessions: tuple[str, ...]

    @property
    def says(self) -> str:
        return self.attribute.tiers["LMR".index(self.tier)]

    @property
    def confidence(self) -> float:
        """The share of sessions that agree, less where they are few: (agreeing + 1) / (sessions + 3), Laplace's rule for three
        tiers."""
        return (len(self.agreeing) + 1) / (len(self.sessions) + 3)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shift:
    """A session that was otherwise in one dimension."""

    session: str
    dimension: str
    usual: Tier
    then: Tier
    distance: float
    """Of the session to the middle, in z-scores."""
    features: tuple[str, ...]
    """That differ most, with a sign: `+total_deletes`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistics:
    mean: float
    median: float
    std: float
    min: float
    max: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What a language model says of a session that was otherwise: whether it is a change of habit, or its task explains it."""

    is_change: bool
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """What the sessions say together."""

    engrams: tuple[Engram, ...]
    traits: tuple[Trait, ...]
    statistics: Mapping[str, Statistics]
    modes: tuple[tuple[str, ...], ...]
    """Sessions by how they were worked, the largest first."""
    anomalies: tuple[str, ...]
    """By FileGram's rule: farther from the middle than the mean and TAU deviations. It cannot fire for four or fewer."""
    robust: tuple[str, ...]
    """By medians, within the mode."""
    shifts: tuple[Shift, ...]
    """Of those that either rule found."""
    verdicts: Mapping[str, Verdict] = field(default_factory=dict)
    """By session, where a language model was asked."""

    @property
    def otherwise(self) -> tuple[Engram, ...]:
        """The sessions that either rule found, in order."""
        found = {*self.anomalies, *self.robust}
        return tuple(one for one in self.engrams if one.session in found)


def consolidate(engrams: Sequence[Engram]) -> Memory:
    """Of any number of sessions, none included."""
    known = sorted(engrams, key=lambda one: (one.begins_ms, one.session))
    traits = tuple(trait for attribute in ATTRIBUTES if (trait := _trait(attribute, known)) is not None)
    z, distances = _distances(known)
    anomalies = _anomalies(known, distances)
    modes = _modes(known, z)
    robust = _robust(known, modes)
    flagged = [one for one in known if one.session in {*anomalies, *robust}]
    return Memory(
        engrams=tuple(known),
        traits=traits,
        statistics={name: _statistics([one.features[name] for one in known]) for name in FEATURES} if known else {},
        modes=modes,
        anomalies=anomalies,
        robust=robust,
        shifts=tuple(shift for one in flagged if (shift := _shift(one, known, z, distances, traits)) is not None),
    )


def tier_of(attribute: Attribute, one: Engram) -> Tier | None:
    """What one session says of an attribute; None where nothing happened that tells."""
    return attribute.rule(_values(one)) if attribute.number in one.has else None


def _values(one: Engram) -> dict[str, float]:
    return {**one.features, **one.extended}


def _trait(attribute: Attribute, known: Sequence[Engram]) -> Trait | None:
    telling = [one for one in known if attribute.number in one.has]
    if not telling:
        return None
    medians = {name: statistics.median(_values(one)[name] for one in telling) for name in (*FEATURES, *EXTENDED)}
    tier = attribute.rule(medians)
    return Trait(
        attribute=attribute,
        tier=tier,
        value=medians[attribute.number],
        agreeing=tuple(one.session for one in telling if tier_of(attribute, one) == tier),
        sessions=tuple(one.session for one in telling),
    )


def _statistics(values: Sequence[float]) -> Statistics:
    return Statistics(
        mean=statistics.fmean(values), median=statistics.median(values), std=statistics.pstdev(values), min=min(values),
        max=max(values),
    )  # fmt: skip


def _distances(known: Sequence[Engram]) -> tuple[Values, Values]:
    """z-scores, a row for each session, and each row's distance to the middle of all."""
    if not known:
        return np.zeros((0, len(FEATURES))), np.zeros(0)
    rows = np.array([one.vector for one in known], dtype=np.float64)
    z = (rows - rows.mean(axis=0)) / (rows.std(axis=0) + EPSILON)
    return z, np.linalg.norm(z - z.mean(axis=0), axis=1)


def _anomalies(known: Sequence[Engram], distances: Values) -> tuple[str, ...]:
    if len(known) < 2:
        return ()
    limit = distances.mean() + TAU * distances.std()
    return tuple(one.session for one, distance in zip(known, distances, strict=True) if distance > limit)


def _robust(known: Sequence[Engram], modes: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """Far from the others of its mode in at least two numbers, by medians: a few odd sessions do not hide each other."""
    by_session = {one.session: one for one in known}
    found: set[str] = set()
    for mode in modes:
        own = [by_session[session] for session in mode]
        if len(own) < 4:
            continue
        rows = np.array([one.vector for one in own], dtype=np.float64)
        middle = np.median(rows, axis=0)
        apart = np.abs(rows - middle)
        median = np.median(apart, axis=0) / _MAD
        spread = np.where(median > 0, median, _MEAN_AD * apart.mean(axis=0))  # most are alike: what is rare is not yet odd
        floor = (0.1 * np.abs(middle) + 0.05) / _MAD  # or nothing may ever differ from what never did
        scores = apart / np.maximum(spread, floor)
        found |= {one.session for one, row in zip(own, scores, strict=True) if (row > ROBUST_MIN).sum() >= 2}
    return tuple(one.session for one in known if one.session in found)


def _modes(known: Sequence[Engram], z: Values) -> tuple[tuple[str, ...], ...]:
    """By agglomeration with average linkage, at most MODES_MAX; fewer where more explain little. Of many sessions those of the
    latest MODES_SESSIONS_MAX."""
    if not known:
        return ()
    known, z = known[-MODES_SESSIONS_MAX:], z[-MODES_SESSIONS_MAX:]
    levels = average_linkage(z)
    chosen = 1
    for count in range(2, MODES_MAX + 1):
        if len(known) >= 3 * count and min(map(len, levels[count])) > 1:
            gain = 1 - _spread(z, levels[count]) / (_spread(z, levels[chosen]) + EPSILON)
            chosen = count if gain >= _MODE_GAIN else chosen
    named = [tuple(known[at].session for at in sorted(group)) for group in levels[chosen]]
    return tuple(sorted(named, key=lambda mode: (-len(mode), mode)))


def average_linkage(z: Values) -> dict[int, list[list[int]]]:
    """Rows in so many groups, for 1 to MODES_MAX. By chains of nearest neighbours (Murtagh, "A survey of recent advances in
    hierarchical clustering algorithms", 1983): n² steps and n² numbers."""
    count = len(z)
    squares = (z * z).sum(axis=1)
    between = np.sqrt(np.maximum(squares[:, None] + squares[None, :] - 2 * z @ z.T, 0.0))
    np.fill_diagonal(between, np.inf)
    sizes = np.ones(count)
    merges: list[tuple[float, int, int]] = []
    chain: list[int] = []
    while len(merges) < count - 1:
        chain = chain or [int(np.isfinite(between).any(axis=1).argmax())]
        one = chain[-1]
        nearest = int(between[one].argmin())
        if len(chain) < 2 or between[one, nearest] < between[one, chain[-2]]:
            chain.append(nearest)
            continue
        one, other = chain.pop(), chain.pop()
        merges.append((float(between[one, other]), one, other))
        mean = (sizes[one] * between[one] + sizes[other] * between[other]) / (sizes[one] + sizes[other])
        between[other], between[:, other] = mean, mean
        between[one], between[:, one] = np.inf, np.inf
        sizes[other] += sizes[one]
    merges.sort(key=lambda merge: merge[0])
    return {groups: _joined(count, merges[: max(0, count - groups)]) for groups in range(1, MODES_MAX + 1)}


def _joined(count: int, merges: Sequence[tuple[float, int, int]]) -> list[list[int]]:
    groups = {at: [at] for at in range(count)}
    of = list(range(count))
    for _, one, other in merges:
        gone = groups.pop(of[one])
        groups[of[other]] += gone
        for at in gone:
            of[at] = of[other]
    return list(groups.values())


def _spread(z: Values, groups: Sequence[Sequence[int]]) -> float:
    return float(sum(((z[list(group)] - z[list(group)].mean(axis=0)) ** 2).sum() for group in groups))


def _shift(one: Engram, known: Sequence[Engram], z: Values, distances: Values, traits: Sequence[Trait]) -> Shift | None:
    """In which dimension a session differs most from what is usual, and which way."""
    at = next(place for place, other in enumerate(known) if other.session == one.session)
    usual = {trait.attribute.name: trait.tier for trait in traits}
    scores = dict(zip(FEATURES, z[at].tolist(), strict=True))
    best: tuple[float, str, Tier, Tier] | None = None
    for dimension, (_, name) in DIMENSIONS.items():
        then = tier_of(_BY_NAME[name], one)
        if then is None or name not in usual or then == usual[name]:
            continue
        weight = statistics.fmean(abs(scores[feature]) for feature in _DIMENSION_FEATURES[dimension])
        if best is None or weight > best[0]:
            best = (weight, dimension, usual[name], then)
    if best is None:
        return None
    features = sorted(_DIMENSION_FEATURES[best[1]], key=lambda feature: -abs(scores[feature]))
    signed = tuple(f"{'+' if scores[feature] > 0 else '-'}{feature}" for feature in features if abs(scores[feature]) > TAU / 2)
    return Shift(
        session=one.session, dimension=best[1], usual=best[2], then=best[3], distance=float(distances[at]), features=signed
    )


def mode_name(memory: Memory, mode: Sequence[str]) -> str:
    """What the sessions of a mode mostly did."""
    counts: Counter[str] = Counter()
    for one in memory.engrams:
        if one.session in mode:
            counts.update(one.counts)
    looked = counts["file_read"] + counts["file_browse"] + counts["file_search"]
    made = counts["file_write"] + counts["file_edit"]
    kept = counts["dir_create"] + counts["file_move"] + counts["file_rename"] + counts["file_copy"] + counts["file_delete"]
    return max((("reading", looked), ("producing", made), ("organising", kept)), key=lambda one: one[1])[0]
