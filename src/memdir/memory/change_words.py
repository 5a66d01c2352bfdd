"""How English says that something is over, done, mended, gained, paid, liked, taken over, moved, changed or made anew: patterns
whose one group that matched is what it is said of.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Final, Literal

from memdir.memory.dates import MONTH, WEEKDAY
from memdir.memory.occupations import JOB
from memdir.store.text.words import stem

Kind = Literal[
    "anything", "doing", "not doing", "wanting", "owing", "trouble", "liking", "disliking", "sharing", "away", "near", "seat",
    "post", "place", "owned", "value", "role", "job", "time", "size", "name", "made", "state", "tool", "the same", "done",
]  # fmt: skip
"""What facts must tell of to be ended: `anything` that is about it; `state`, `tool`, `the same` and `done` are found in
`endings`."""

_THE: Final = r"(?:(?:the|my|our|his|her|their|its|all|an?) )?"
_NP: Final = r"((?:[^.,;:!?()–—]|(?:(?<=\bSt)|(?<=\b[DM]r)|(?<=\bMs)|(?<=\bMrs)|(?<=\bProf)|(?<=\d))[.]){2,60}?)"
_OBJECT: Final = rf"(?:(?:with|using|doing|on|in|at|from) )?{_THE}{_NP}"
_END: Final = (
    r"(?<!\b[DM]r)(?<!\bMrs)(?<!\bMs)(?<!\bSt)(?<!\bProf)(?=\s*[.,;:!?()–—]|\s*$| - | -> | (?:and|but|because|since|so|"
    r"for|to|with|in favou?r of|after|when|last|this|that|today|yesterday|now|as|by|instead|on|any ?more|any longer|"
    r"altogether|too|completely|entirely|again|needed|required|necessary|aside|down|lapse|go|expire|run out|these days|near|"
    r"closer|nearer|"
    r"after all)\b)"
)
_CLAUSE: Final = (
    r"(?:^(?:[^:]{1,40} – |\d{4}-\d\d-\d\d: )?|[.,;:–—(] |\b(?:and|but|so|then|that|says|said|means|because|since) )"
)
_HOW: Final = (
    r"(?:(?i:finally|just|now|also|already|really|recently|officially|completely|fully|totally|entirely|had to|"
    r"decided to|managed to|been|all) )*"
)
_WE: Final = (
    r"(?:(?:I|[Ww]e|[Tt]hey|[Ss]he|[Hh]e|(?:[Tt]he|[Mm]y|[Oo]ur) [a-z-]+|[A-ZÀ-Þ][\w.]+(?: and I)?)"
    rf"(?:['’](?:ve|m|re|s)| have| has| had| am| are| is| was| were)? )?{_HOW}"
)
"""Who does something, and how."""
_THING: Final = rf"(?:{_CLAUSE}{_THE}|\b(?:my|our) )((?:(?! (?:my|our|(?:and|but|so) (?:the|my|our)) )[^.,;:!?()–—]){{2,50}}?)"
"""What something is said of, at the beginning of a clause."""
_IT: Final = rf"{_THING} "
_IT_IS: Final = rf"{_THING}(?:(?: is| are| was| were| has| have| had| got|['’]s)(?: been| got)?)? {_HOW}"
_SAID: Final = (
    r"(?=\s*[.,;!?)–—]|\s*$| - | (?:on|at|in|by|last|this|today|yesterday|now|since|and|but|for good|after|because|due|"
    r"until|as|too|permanently|down|entirely|completely)\b)"
)
"""Nothing that the word before could take as its object."""


def _one_of(listed: str) -> str:
    """Any of the phrases, which stand between bars over several lines."""
    return f"(?:{''.join(line.strip() for line in listed.splitlines())})"


_ENDS: Final = _one_of(r"""
    sold|broke off|flogged|traded(?: in)?|gave (?:away|back|up(?: on)?)|given (?:away|back|up)|giving up|handed (?:back|
    over)|returned|got rid of|getting rid of|threw (?:out|away)|tossed|binned|donated|gave(?= (?:my|the|
    our) [^.,;]{2,40} to\b)|some(?:one|body) stole|stop(?= \w+ing\b)|
    stopped(?! (?:at|by|in|for|the (?:car|bus|train|bike|clock|timer)(?! \w))\b)|
    stopping(?= \w+ing\b)|
    quit|quitting|dropped(?! [^.,;]{0,30}\b(?:off|at)\b)|ended(?! up\b)|ditched|dumped|abandoned|axed|killed(?: off)?|scrapped|
    shelved|paused|canned|deleted|removed|decommissioned|retired(?= (?:the|my|our) )|sunset|deprecated|disabled|shut down|
    closed(?: down)?(?= (?:on )?(?:my|our|the) (?!(?:laptop|lid|door|windows?|book|curtains|blinds|file|tab|app)\b))|
    switched off|turned off|wound (?:up|down)|dissolved|disbanded|phased out|
    took down|tore down|
    (?:moved|migrated|switched|got|came|went|weaned) (?:off|away from)|moved on from|unsubscribed from|uninstalled|
    (?:opted|pulled|backed|dropped) out of|resigned (?:from|as)|(?:stepped (?:down|aside|back)|stood down) (?:as|from)|
    retired (?:from|as)|left(?= (?:the|my|our) (?!house|home|office|flat|room|table)\w(?![^.,;]* (?:at|behind|on|
    in) (?:the|my|work|home)\b)(?![^.,;]* (?:with|early)\b))|
    walked away from|parted ways with|(?:split(?: up)?|broke up|separated) (?:from|with)|
    divorced|(?:done|through|finished) with|no more|no longer(?: \w+ing)?|no(?= [^.,;]{2,40} (?:any ?more|needed|required|
    necessary|for me|now)\b)|decided (?:not to|against)|changed my mind about|grew out of|outgr(?:ew|own)|got over|
    recovered from|gave notice (?:on|at|to)|handed in (?:my |his |her )?notice at|terminated|fired|sacked|laid off|
    took me off|(?:my )?last day (?:at|with)|replaced|swapped(?: out)?|exchanged|(?:switched|changed)(?! (?:to|from|the|
    our)\b)|cancell?ed|called off|let(?= [^.,;]{2,40} (?:lapse|go|expire|run out)\b)|put(?= [^.,;]{2,40} (?:aside|down|
    on (?:hold|ice|pause|the back burner))\b)|handed(?= [^.,;]{2,40} (?:over )?to\b)|passed(?= [^.,;]{2,40} (?:on )?to\b)|
    moved out of|left(?= [A-ZÀ-Þ][^,;]{1,30} (?:in [A-Z]|last (?:week|month|year)|for good|after \w+ (?:months|years)))|
    (?:signed off|discharged) by|did(?:n['’]t| not) renew|won['’]t (?:renew|be renewing)|lost(?= (?:my|our) )|
    lost interest in|(?:(?:got|gotten|getting|so|pretty|a bit) )?(?:sick|tired|bored) of|fed up with
""")
"""What is done to a thing that is no more, or no more one's own."""
_IS_ENDED: Final = _one_of(r"""
    sold|(?<=is )(?:over|off|gone)|(?<=are )(?:over|off|gone)|(?<=was )(?:over|off|gone)|behind (?:me|us)|history|
    cancell?ed(?! on (?:me|us|him|her|them)\b)|called off|scrapped|shelved|ended|discontinued|dissolved|disbanded|
    decommissioned|deprecated|
    switched off|shut down|uninstalled|removed|deleted|abolished|lifted|rejected|withdrawn|left|quit|resigned|folded|no more|
    on (?:hold|ice|pause)|obsolete
""")
"""What is said of such a thing, where nothing follows."""
_HAS_ENDED: Final = _one_of(r"""
    replaced(?! (?!by\b|with\b)[^.,;]{2,40} (?:by|with)\b)(?! (?:the|my|our|his|her|their|an?|all|some|it)\b)|
    superseded|split into|broken up|merged into|dead|died|
    stolen|passed away|retired|expired|lapsed|came off|fell (?:through|apart)|moved (?:out|away|on(?! to\b))|
    (?:split|broke) up(?! (?:with|from)\b)|closed (?:down|for good|its doors)|
    went (?:bust|back|under|bankrupt|out of business|away)|(?:ran|run) out(?! of)|wore off|
    disappeared|called it quits|broke(?=\s*[.,;!]|\s*$)|
    didn['’]t work out|stepped (?:down|aside)|written off|totall?ed
""")
_MENDED: Final = (
    "(?:fixed|repaired|solved|resolved|mended|patched|sorted(?: out)?|treated|refilled|restocked|renewed|restored|unblocked)"
)
_IS_WELL: Final = _one_of(r"""
    healed|cured|back to normal|recovered|gone|cleared up|(?:went|gone) away|handled|over|(?:fine|better|working|works?|
    up|running|up and running|online|ok|okay|all right|good|clean|quiet|stable|passing|green) again|back (?:up|online|
    in (?:operation|service))|(?:passes|works|stable|running|ok|okay|fine|green) now
""")
_FINISHES: Final = _one_of(r"""
    finished|completed|ran|passed|did|read|watched|handed in|shipped|submitted|delivered|wrapped up|done with|
    (?:withdrew|backed out|bowed out|pulled out|dropped out) (?:from|of)|did(?:n['’]t| not) get|got(?= (?:the|my) )|
    launched|released|published|graduated from|signed off|
    (?:first day )?back after
""")
_IS_FINISHED: Final = _one_of(r"""
    done|finished|complete|completed|through|wrapped up|shipped|launched|live|released|published|out|signed off|final|
    went (?:great|well|fine|ok|okay|badly|smoothly|really well|very well)|was a (?:success|disaster|breeze)
""")
_GAINS: Final = _one_of(r"""
    bought|got|found|booked|ordered|moved into|signed(?: for)?|adopted|hired|picked up|received|secured|landed|
    was offered|accepted|became
""")
_CAME: Final = _one_of(r"""
    arrived|delivered|(?<=is )here|granted|approved|came (?:through|in|back|today|yesterday)|(?:is|are) in(?=\s*[.,;!]|
    \s*$)|showed up|turned up|accepted|issued|went through
""")
_LATER: Final = _one_of(r"""
    moved|pushed(?: back| out)?|slipped|shifted|rescheduled|postponed|delayed|brought forward|put back|extended|rebooked|
    changed|bumped
""")
_RESIZED: Final = _one_of(r"""
    raised|lowered|increased|decreased|reduced|cut|bumped(?: up)?|doubled|halved|(?:went|gone) (?:up|down)|rose|risen|
    dropped(?! [^.,;]{0,30}\boff\b)|grew|grown|shrank|shrunk|fell|fallen|upped|capped|changed|set
""")
_REMADE: Final = _one_of(r"""
    ported|rewrote|rewritten|migrated|converted|reimplemented|rebuilt|switched|moved(?: over)?|transferred|upgraded|
    updated|(?:finished|done|completed) (?:porting|rewriting|migrating|converting|moving|switching)
""")
_LIKES: Final = _one_of(r"""
    (?:got|gotten|grown) used to|made (?:my )?peace with|(?:come|came) (?:a)?round to|(?:grown|grew|learn(?:ed|t)|come|
    started|starting) to (?:like|love|enjoy|appreciate)|warmed (?:up )?to|(?:fall|fallen|fell) in love with|(?:(?:quite|
    actually) )?(?:like|love|enjoy)
""")
_DISLIKES: Final = _one_of(r"""
    (?:gone|went) off|(?:can['’]t|cannot) stand|hate|don['’]t (?:really )?(?:like|enjoy|love)|fell out of love with|over
""")
_WHEN: Final = (
    rf"(?:\d|{WEEKDAY}|{MONTH}|week|month|year|quarter|tomorrow|today|noon|midnight|morning|afternoon|evening|spring|summer|"
    r"autumn|fall|winter|later|earlier|notice)"
)
NOW_IS: Final = (
    r"(?:is|are|costs?|takes?|starts?|ends?|opens?|closes?|runs?) (?:now (?=[^.;]*(?:\d|(?-i:[A-Z])))"
    r"|(?=[^.;]*(?:\d|(?-i:[A-Z])))[^.;,]{1,40} (?:now|from now on|these days|going forward)\W*$)"
)
"""How something is after it changed: a number or a name tells it."""
_A_TEAM: Final = r" (?:(?:the|our|my|an?|another) )?[\w '’]{0,20}\b(?:team|department|squad|group)\b"
_NO_STUFF: Final = (
    r"(?! (?:(?:the|our|my|an?|another) )?(?:[\w-]+ )?(?:repo\w*|folder|board|channel|calendar|room|floor|desk|page|building|"
    r"review|beta|production|testing|staging|use|progress|maintenance|public|private)\b)"
)
_TAKES_OVER: Final = r"\b(?:took|takes|taking|has taken) over"
_NAME: Final = r"[A-ZÀ-Þ]\w+(?: [A-ZÀ-Þ]\w+)?"
_DO: Final = (
    r"(?:(?:need|have|use|own|support|sell|offer|accept|ship|wear|see|take|go to|do|eat|drink|play|want|work (?:at|for|"
    r"with|on)|live (?:in|at|with)|visit|read|watch|ride|drive|get|buy|pay(?: for)?|meet|share|need to|have to) )?"
)
_FOR_LONG: Final = r"(?:since|(?:in|for) (?:\w+ )?(?:weeks|months|years|ages|a while))"
INSTEAD: Final = re.compile(rf"\b(?:instead of|rather than) (?:\w+ing )?{_OBJECT}{_END}")
LEAVES_WORK: Final = re.compile(
    r"(?:^|[ .,;:–—(])(?:[A-ZÀ-Þ][\w'’-]+(?: [A-ZÀ-Þ][\w'’-]+)?|(?:[Mm]y|[Oo]ur) [a-z-]+)(?: (?:has|have|had|just|finally|also|"
    r"now|already|recently|officially|is|was))* (?:left|quit|resigned|retired)$"
)
"""Of somebody who leaves their post all else stays: who they are, where they live, what they like."""
_FOR_NOW: Final = re.compile(
    r" (?:at|early|late|around|before|after(?! (?:\w+ )?(?:years|months)\b)|again|today|tonight|"
    r"this (?:morning|afternoon|evening|week))\b"
)
_BY_CHANCE: Final = re.compile(r" (?:[^.,;]{0,30} )?(?:early|by (?:accident|mistake))\b(?! retire)")
_TABLE: Final[tuple[tuple[Kind, str], ...]] = (
    ("anything", rf"{_CLAUSE}{_WE}(?i:{_ENDS}) {_OBJECT}{_END}"),
    ("anything", rf"{_IT_IS}(?:{_IS_ENDED}{_SAID}|{_HAS_ENDED}\b)"),
    (
        "anything",
        (
            r"\b(?:[Mm]oved|[Mm]igrated|[Ss]witched|[Cc]hanged|[Pp]orted|[Tt]ransferred)(?: (?:all|my|our|it|everything)\b"
            rf"[^.,;:]{{0,40}}?)? from {_THE}{_NP} (?:over )?to\b"
        ),
    ),
    (
        "anything",
        (
            r"(?:(?:\b(?<!will )not|(?<!\bwo)n['’]t)(?= [^.;]*\b(?:after all|any ?more|any longer)\b)|"
            rf"\b[Tt]urns? out [^.;,]{{1,30}} not) {_DO}{_OBJECT}(?=,? after all| any ?more| any longer|[.,;!?()]|$)"
        ),
    ),
    ("anything", rf"\b(?:haven['’]t|hasn['’]t|have not|has not) (?:been (?:to )?)?{_THE}{_NP}(?= {_FOR_LONG}\b)"),
    (
        "anything",
        (
            r"([A-ZÀ-Þ]\w+) and I (?:have |are |finally |just |recently )*(?:split up|broke up|separated|(?:getting )?divorced|"
            r"called it quits|no longer together|(?:aren['’]t|are not) (?:together|a couple)|over\b|not together)"
        ),
    ),
    ("anything", rf"\b(?:can|may|allowed to) (?:take|leave) {_THE}{_NP} off\b"),
    ("anything", rf"{_CLAUSE}{_WE}(?i:got|took) {_THE}{_NP} (?:off|removed|taken (?:off|out))\b"),
    (
        "anything",
        (
            rf"{_CLAUSE}{_WE}(?i:shut|turned|switched|wound|called|tore|threw|gave|phased|cut) {_THE}{_NP} (?:off|out|away|"
            rf"down|up|back)\b"
        ),
    ),
    ("anything", rf"{_CLAUSE}(?:(?:I|[Ww]e)(?:['’]ve| have)? )?{_HOW}(?i:upgraded) to {_THE}{_NP}{_END}"),
    (
        "anything",
        (
            rf"{_IT}(?:has )?(?:terminated|cancell?ed|ended|pulled out of|didn['’]t renew|did not renew) (?:the|their|"
            rf"our) (?:contract|agreement|"
            r"subscription|partnership|deal|engagement)\b"
        ),
    ),
    (
        "anything",
        rf"\b(?:switched|moved|changed|went|gone|now|these days)\b[^.]*[,;–—] no (?:more )?{_NP}(?=\s*[.,;!]|\s*$)",
    ),
    (
        "trouble",
        (
            rf"{_IT}(?:has|have) been (?:fine|great|perfect|stable|green|ok|okay|quiet|solid|reliable|good|working|up) (?:for|"
            rf"since)\b"
        ),
    ),
    ("trouble", rf"{_IT_IS}(?:{_MENDED}|{_IS_WELL}){_SAID}"),
    ("trouble", rf"{_CLAUSE}{_WE}(?i:{_MENDED}|recovered from|got over|caught up (?:on|with)) {_THE}{_NP}{_END}"),
    ("trouble", rf"{_CLAUSE}{_WE}(?i:found|picked up) {_THE}{_NP}(?: (?:from the|in|under|behind|inside|at)\b|{_END})"),
    ("trouble", rf"{_CLAUSE}{_WE}(?i:picked) {_THE}{_NP} up (?:from|at)\b"),
    ("trouble", rf"{_CLAUSE}{_WE}(?i:got) {_THE}{_NP} (?:fixed|repaired|working|back|sorted)\b"),
    ("doing", rf"{_CLAUSE}{_WE}(?i:{_FINISHES}) {_OBJECT}{_END}"),
    ("doing", rf"{_IT_IS}{_IS_FINISHED}{_SAID}"),
    (
        "wanting",
        (
            rf"{_CLAUSE}{_WE}(?i:{_GAINS}) {_THE}(?:new )?{_NP}(?= (?:in|on|at|from|with|by|for|as|and|today|yesterday|last)\b|"
            r"[.,;:!?()–—]|\s*$)"
        ),
    ),
    ("wanting", rf"{_IT_IS}{_CAME}\b"),
    ("wanting", r"\b(?:[Mm]y|[Oo]ur) new ([a-z-]+(?: [a-z-]+)?)(?= [A-ZÀ-Þ]| (?:is|starts|started|arrived|came|has|begins)\b)"),
    (
        "wanting",
        rf"{_IT}(?:has )?(?:(?:rejected|turned down|declined|passed on|ghosted) (?:me|us|my|our)|turned (?:me|us) down)\b",
    ),
    ("wanting", rf"{_CLAUSE}{_WE}(?i:signed) {_THE}(?:lease|contract|papers) (?:for|on) {_THE}{_NP}(?: (?:on|in|at)\b|{_END})"),
    (
        "owing",
        (
            rf"{_CLAUSE}{_WE}(?i:paid|repaid|settled(?: up)?(?: with)?|squared up with|reimbursed)(?: (?:off|"
            rf"back))? {_OBJECT}(?: back| off)?{_END}"
        ),
    ),
    ("owing", rf"{_CLAUSE}{_WE}(?i:gave|handed|sent) {_NP} back\b"),
    ("owing", rf"{_IT_IS}(?:paid(?: off| back)?|settled|cleared){_SAID}"),
    ("not doing", rf"\b(?:can|may|allowed to) [a-z]+ {_THE}{_NP}(?= (?:again|now|just|fine|after all)\b)"),
    ("not doing", rf"\bback (?:on|at|to|into) (?:\w+ing )?{_THE}{_NP}{_END}"),
    ("not doing", rf"\b(?:started|resumed|eat|drink|go to|play|use|do|take|took up|picked up) {_THE}{_NP} again\b"),
    ("not doing", rf"\b(?:resumed|restarted|took up|picked back up) {_THE}{_NP}{_END}"),
    ("disliking", rf"{_CLAUSE}{_WE}{_LIKES} {_OBJECT}{_END}"),
    ("liking", rf"{_CLAUSE}{_WE}{_DISLIKES} {_OBJECT}{_END}"),
    ("away", rf"\b(?:[Bb]ack (?:home )?from|[Hh]ome from|[Oo]ut of) {_THE}{_NP}{_END}"),
    ("seat", rf"({_NAME}) (?:has )?(?:been )?(?:moved|transferred|switched|relocated) (?:to|into|over to)\b(?!{_A_TEAM})"),
    ("near", rf"({_NAME}) (?:has )?(?:been )?(?:moved|transferred|switched|relocated) (?:to|into|over to)(?={_A_TEAM})"),
    ("near", rf"({_NAME}) (?:has )?(?:moved|changed|switched) (?:teams|departments)\b"),
    (
        "near",
        rf"({_NAME}) (?:has )?(?:quit|left) (?:the|our|my) (?:gym|project|club|band|group)\b",
    ),
    (
        "post",
        (
            rf"({_NAME}) (?:(?:has |just )*(?:changed jobs|(?:quit|left) (?:us|(?:her|his|their) job|(?:the|our|my) (?:company|"
            r"team|firm|practice|department|agency|office)))|(?:no longer|doesn['’]t|does not) works? (?:here|with us|for us|"
            r"there)|is no longer (?:here|with (?:us|the \w+)|on (?:the|our|my) team)|(?:was|got|has been) (?:laid off|fired|"
            r"let go|made redundant))\b"
        ),
    ),
    ("job", rf"{_IT}(?:became|(?:was|got|has been) promoted|retrained as|is now an?)\b"),
    ("place", rf"{_CLAUSE}{_WE}(?i:moved) {_THE}{_NP} (?:over )?(?:to|into|next to)\b"),
    ("place", rf"{_IT_IS}(?:moved|relocated) (?:over )?(?:to|into|next to)\b(?!{_A_TEAM})"),
    ("owned", rf"\b(?:(?i:got|bought|found|chose)|gave me|have|has|ordered|issued me) (?:an? |my |our )?new {_NP}{_END}"),
    ("owned", rf"{_CLAUSE}(?:[Tt]he |[Mm]y |[Oo]ur )?[Nn]ew {_NP} (?:is|are|has|have|arrived|came)\b"),
    (
        "value",
        (rf"{_IT}(?:takes?|costs?|lasts?|starts?|ends?|begins?|opens?|closes?|leaves?|departs?|arrives?|weighs?|expires?)\b"),
    ),
    ("sharing", rf"\b(?:have|has|got|['’]s got|['’]ve got) (?:my|his|her|their|our) own {_NP}{_END}"),
    ("role", rf"{_TAKES_OVER}(?: from {_NAME})? as {_THE}{_NP}{_END}"),
    ("role", rf"{_TAKES_OVER} {_THE}{_NP}(?: from\b|{_END})"),
    ("role", rf"\breplace[sd]? {_NAME} as {_THE}{_NP}{_END}"),
    ("role", rf"\b(?:stepped (?:down|aside|back)|stood down|resigned|retired|quit) as {_THE}{_NP}{_END}"),
    (
        "role",
        (
            r"\b(?:became|(?:is|was|got) (?:promoted to|appointed(?: as)?)|(?:was|got) (?:made|named)(?! (?:after|by|from|in|"
            r"of|with)\b)|(?:is|am|are|['’]m|['’]s) (?:now )?(?:the|our|"
            rf"my) new) (?!(?:an? |the )?(?:grand)?(?:father|mother|parents?|dad|mum)\b){_THE}{_NP}{_END}"
        ),
    ),
    ("role", rf"\b[Mm]ade {_NAME} (?:my|our|the) (?:(?:new|main|default|primary|go-to) )*{_NP}{_END}"),
    ("role", rf"\b[Oo]wnership of {_THE}{_NP} (?:went|moved|passed|goes|has (?:gone|moved|passed))\b"),
    (
        "role",
        (
            r"\b(?:owns|maintains|leads|manages|heads|handles|looks after|(?:is|am|are) (?:responsible for|in charge of)) "
            rf"{_THE}{_NP}(?= (?:now|from now on|since)\b)"
        ),
    ),
    ("role", rf"(?:^|, )(?:[Tt]he|[Oo]ur|[Mm]y) new {_NP} is\b"),
    ("role", rf"\bis {_THE}(?!(?:in|on|at|with|out|back|off|to|from|by|under)\b)([^\W\d][^.,;:!?()–—]{{2,50}}?) now\b"),
    (
        "time",
        (
            rf"{_IT_IS}(?!(?:moved|changed|shifted) (?:the|my|our|her|his|their|it)\b){_LATER}\b"
            rf"(?! (?:on|in|off|away|closer|up|over|teams|jobs|schools)\b)(?! (?:to|into) (?![^.;]*?{_WHEN})){_NO_STUFF}"
        ),
    ),
    ("time", rf"{_CLAUSE}{_WE}(?i:{_LATER}) {_THE}{_NP}(?= (?:(?:to|until|till|by|from) [^.;]*?{_WHEN}|back|forward|out)\b)"),
    ("size", rf"{_IT_IS}{_RESIZED}(?= (?:from|to|by|at|again)\b|\s*[.,;!]|\s*$)"),
    ("size", rf"{_IT_IS}(?:hit|reached|crossed|up to|down to|up at|down at)(?= (?:\d|an?\b))"),
    ("size", rf"{_CLAUSE}{_WE}(?i:{_RESIZED}) {_THE}{_NP}(?= (?:from|to|by)\b| at \d)"),
    ("name", rf"{_IT_IS}(?:renamed|rebranded)\b|{_IT}(?:is|are) (?:now )?called\b"),
    ("name", rf"{_CLAUSE}{_WE}(?i:renamed|rebranded) {_THE}{_NP}(?: (?:to|as|into)\b|{_END})"),
    ("made", rf"{_IT_IS}{_REMADE} (?:to|in|into|onto|with)\b(?!{_A_TEAM}){_NO_STUFF}"),
    ("made", rf"{_CLAUSE}{_WE}(?i:{_REMADE}) {_THE}{_NP} (?:over )?(?:to|in|into|onto|with)\b"),
    ("made", rf"{_IT}(?:now )?(?:runs? (?:on|in|with)|uses?) (?=[^.;]*\b(?:now|since|as of|these days|from now on)\b)"),
    ("made", rf"{_IT}(?:is|are)(?: all)? (?:now )?(?:all )?(?:hosted|written|built) (?=[^.;]*\b(?:now|since)\b)"),
    ("made", rf"{_IT}(?:is|are)(?: all)? now(?: all)? (?:on|in|with|hosted|written|built)\b{_NO_STUFF}"),
)


def is_for_now(statement: str, match: re.Match[str]) -> bool:
    """Whether it is over for now only ("Ana left at eight", "stopped the run early"), or none is left ("No tea left")."""
    if match[0].endswith(" early") or _BY_CHANCE.match(statement, match.end()):
        return True
    is_gone = match[0].endswith(("left", "is off", "are off", "is gone", "are gone"))
    return is_gone and (match[0].startswith("No ") or _FOR_NOW.match(statement, match.end()) is not None)


@cache
def patterns() -> tuple[tuple[Kind, re.Pattern[str]], ...]:
    """Compiled when the first statement is read: a server without memories starts sooner."""
    return (("anything", INSTEAD), *((kind, re.compile(pattern)) for kind, pattern in _TABLE))


_TELLS: Final[dict[Kind, str]] = {
    "doing": (
        r"\b(?:train|prepar|study|learn|read|watch|writ|work(?!s? (?:at|for|as)\b)|build|plan|wait|practi[sc]|draft|apply|"
        r"renovat|redo|remodel|refactor|migrat|negotiat|onboard|teach|attend|enrol|taking|going through|in the middle of|"
        r"sign(?:ed|ing) up|register|doing)\w*\b|\b(?:to do|todo|"
        r"due|deadline|in progress|on (?:\w+ )?leave|projects?|current(?:ly)?)\b"
    ),
    "wanting": (
        r"\b(?:(?:want|need|plan|wish|hop[ei]|buy|wait|pending|appl[iy]|search|hunt|shop|interview)\w*|looking for|"
        r"saving (?:up )?for|thinking of|on order|ordered|in the market for|trying to|getting|expecting|short|lacking|"
        r"missing|vacancy)\b"
    ),
    "owing": r"\b(?:owes?|paying off|debt|loan|lent|borrowed|mortgage|invoice|bill)\b",
    "trouble": (
        r"\b(?:problem|trouble|issue|bug|fault|leak|crack|damp|broke|hurt|ache|pain|stuck|fail|slow|flaky|infect|noise|"
        r"down|wrong|sick|ill|injur|sprain|damag|dead|lost|treated|workshop|garage|repair|out of order|offline|fever|flu|"
        r"cold|cough|crash|outage|behind|block|missing|stolen|error|hospital|out of|empty|expire|terribl|awful|bad|"
        r"unreliable|unstable|laggy|weak|dry)\w*\b|n['’]t\b|\bnot\b"
    ),
    "disliking": (
        r"\b(?:hates?|dislikes?|avoids?|(?:can['’]t|cannot|do(?:n['’]t| not)) (?:really )?(?:stand|like|enjoy)|"
        r"not a (?:big )?fan)\b"
    ),
    "liking": r"\b(?:likes?|loves?|enjoys?|favou?rite|prefers?|fan of|addicted|obsessed|always|crush on|in love|into)\b",
    "away": (
        r"\b(?:in (?:the |a )?(?:hospital|rehab|clinic|care)|until|till|trip|visit(?:ing)?|travel\w*|flying|going|vacation|"
        r"holidays?|leave|this week|next week)\b"
    ),
    "seat": r"\b(?:sits?|desk)\b",
    "near": r"\b(?:sits?|desk|reports? to|works? with|on (?:my|our|the) [\w ]{0,20}team|my (?:manager|boss|lead)|(?:our|"
    r"my) [\w-]+ is|is (?:our|my))\b",
    "post": (
        r"\b(?:sits|desk|office|comes|reports? to|works?(?! out\b)|team|department|joined|my (?:manager|boss|lead)|(?:our|my) "
        r"[\w-]+ is|is (?:our|my)|owns (?!an? |her |his )|owner|maintains|leads?|manages|heads|handles|reviews|looks after|"
        r"responsible|in charge|runs (?:the|our|all)|drives (?:an? |the )?(?:truck|lorry|bus|taxi|cab|tram|train))\b|"
        rf"(?:: | (?:is|have|has) (?:an?|the|our) )(?:[\w-]+ ){{0,2}}(?!vegetarian){JOB}\b"
    ),
    "job": r"\b(?:teaches|works as|is (?:an?|our|the|my) (?:\w+ ){0,2}\w+(?:er|or|ist|ant|ian))\b",
    "sharing": r"\bshar(?:e|es|ed|ing)\b|\bwith\b",
    "role": r"\b(?:is|am|are|as|owns|owner|maintains|leads|manages|heads|handles|looks after)\b|['’][ms]\b|:",
    "time": (
        rf"\b(?:{WEEKDAY}s?|{MONTH}|planned|"
        r"scheduled|due|deadline|tomorrow|week|month|at \d|\d\d?[:.]\d\d|\d\d?(?:st|nd|rd|th)|\d ?(?:am|pm))\b|\d{4}-\d\d"
    ),
    "size": r"\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|dozen|hundred|thousand|half|double)\b",
    "name": r"\b(?:called|named|name)\b|\b(?:is|are) (?-i:[A-ZÀ-Þ])",
    "made": (
        r"\b(?:(?:written|built|made)(?! \w+s\b)|implemented|runs?|running|host(?:s|ed)?|deploy(?:s|ed)?|stored|uses?|using|"
        r"(?:is|are) (?:in|on|at(?! \d)|\w+ v?\d[\d.]*)|version|keeps?|kept)\b"
    ),
    "not doing": r"\b(?:not|never|no|without|stopped|quit|gave up|given up|cancell?ed|dropped|sold|ended|off)\b|n['’]t\b",
}
_NOUN: Final = re.compile(r"(?<=\w{4})(?:ion|ic|ist|al|cy|y|ment|ship)$")
_DOUBLED: Final = re.compile(r"([bdgmnprt])\1$")


@cache
def told_by(kind: Kind) -> re.Pattern[str]:
    """What facts say of which something is over; of any kind but `anything`."""
    return re.compile(_TELLS[kind], re.IGNORECASE)


def root(word: str) -> str:
    """Of "renovation" and "renovating", "running" and "run", "allergic" and "allergy"."""
    return _DOUBLED.sub(r"\1", _NOUN.sub("", stem(word)))


def listed(text: str) -> frozenset[str]:
    """Roots of the words of a text."""
    return frozenset(map(root, text.split()))
