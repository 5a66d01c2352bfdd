"""Words that tell little of what a question is about, so that they weigh less where it is judged whether a memory answers it.

No stop words: whoever looks for "run" finds it. EVERYDAY are words of everyday English and of any request, what people say
around what they ask about; a long question is looked for without them. WORK are those of any work on software.
"""

from __future__ import annotations

from typing import Final

_WORDS: Final = """
able above accept across actual add adjust afraid afternoon again against ago agree ahead allow almost alone along already
alright although always amaze amount annoy another anybody anymore anyone anyway anywhere apart appear apply appreciate argue
around arrive aside ask asleep attempt attention autumn avoid aware away awful back bad badly beautiful become begin begun
behave behind believe belong below beside best better between big bored boring bother bright bring broken brought buy calm
came care careful carry case caught cause certain chance change chat cheap check choice choose chose clear clever climb cold
come comfort common complain confuse consider continue correct couple course crazy create curious current day deal dear debug
decide definite delay depend describe desk die differ different difficult dirty discuss doubt dream drive due during each
early easily easy either else elsewhere end enjoy enough entire especially even evening ever every everybody everyone
everything everywhere example excellent except excite excuse expect expensive experience explain extend extra fact fair fall
famous far fast favor favorite favour fear feel feet fell felt few final finally fine finish first fit five fix follow forever
forget forgot found four free fresh friday friend front full fun funny further gave general get girl give given glad go goes
going gone good goodbye got great grew guess half hand handle happen happy hard hardly hate hear heard held hello help hi high
hold home honest hope hour however huge hundred hurry hurt idea imagine implement important impossible improve include indeed
inside instead intend interest investigate issue keep kept kind knew know knowledge known last late lately later lazy learn
least leave left less lesson let letter life like likely line listen little long look lose lost lot lots loud love lovely low
luck lucky mad main make man many matter maybe mean meant meanwhile meet meeting mention mess met middle might mile mind mine
minute miss mistake moment monday money month morning mostly move much must near nearly necessary need never new news next
nice night nine nobody noise none noon normal nothing now nowadays nowhere obvious obviously occur odd offer often okay old
one ones onto open opinion opposite ordinary otherwise ought outside overall own pardon past peace people perfect perhaps
person pick place plain plan please pleasure plenty point polite poor possible present pretty probably problem promise
properly proud prove put question quick quickly quiet quite raise ran rarely rather read ready real realise realize really
reason receive recent recently refactor relax remain remember remind rename repeat review rewrite rich right run rush sad safe
said saturday saw say second see seem seen self serious set seven several shall short show side similar simple simplify simply
since sit situation six slightly slow slowly small smart soon sorry sound speak special spend spent spoke stand start stay
step stick still stood stop story strange stuff stupid succeed sudden suddenly suggest sunday suppose sure surely surprise
take taken talk taught team tell ten terrible thank thanks therefore thing think third thirty though thought thousand three
threw throw thursday time tiny today together told tomorrow tonight took touch toward towards town tried trip trouble true
trust truth try tuesday turn twelve twenty twice two understand understood unfortunately unless unlike until update upon upset
use used useful usual usually value various wait walk want watch way weak weather wednesday week weekend welcome well went
west wet whatever whenever wherever whether whoever whole wide wish within without woke won wonder wonderful word wore work
world worried worry worse worst worth wow write written wrong wrote yeah year yes yesterday yet
"""
_WORK_WORDS: Final = """
api app application bug build class client code command config configuration configure customer data directory error fail
failure feature file folder function line method module name option package page project script server service setting system
test user
"""
EVERYDAY: Final = frozenset(_WORDS.split())
WORK: Final = frozenset(_WORK_WORDS.split())
