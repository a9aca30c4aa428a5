"""English words for the noise around questions: none that could be part of a country's name, such as "new"."""

from models.tiny.table import words

WORDS = words("""
a able about above accept across act actually add advice after afternoon again against age ago agree ahead air
all allow almost alone along already also although always am among amount an and animal another answer any
anybody anyone anything anyway apart apple are area arm around arrive art article as ask asked asking asks at
autumn aware away baby back bad bag ball bank basic basket be beach bear beat beautiful became because become
bed been before began begin behind being believe bell below best bet better between beyond big bird bit black
blue board boat body bone book booklet border born borrow both bother bottle bottom bought bowl box boy brain
branch bread break breakfast bridge brief briefly bright bring broke brother brought brown build built bus
business busy but buy by cake call called calls came camp can candle car card care careful carry case cat catch
cause cell center certain certainly chair chance change chapter chat check cheese child children choice choose
circle class clean clear clearly clever climb clock close cloud coat code coffee cold color come common company
compare complete computer confirm consider cook cool copy corner correct cost could count couple course court
cover cow crossword cup curious current currently cut daily dance dark data date daughter day dear decide deep
definitely depend describe desk detail did difference different difficult dinner dish do doctor does dog doing
done door doubt down draw dream dress drink drive dry during each ear early earth easily easy eat edge effect
egg eight either else email end engine enjoy enough entire entry especially essay even evening ever every
everybody everyone everything exactly exam example except excuse expect explain express extra eye face fact
fair fall family famous far farm fast father favor favorite fear feel feet fell few field fifth fight figure
file fill film final finally find fine finger finish fire first fish five fix flag flat floor flower fly follow
food foot for forest forever forget forgot form formal former forward found four free fresh friend friendly
from front fruit full fun funny further future game garden gate gave general geography get giant gift girl give
given glad glass go goal goes going gold gone good got government grade grandma grass green grew ground
group grow guess guide had hair half hall hand happen happy hard has hat have he head hear heard heart heat
heavy held hello help helpful her here hers hey hi hide high hill him hint his historic history hit hold home
honest honestly hope horse hot hotel hour house how however human hundred hungry hurry I ice idea if imagine
important in indeed inform inside instead interest interested into invite is issue it item its job join joke
journey joy judge jump just keen keep kept key kick kid kind kindly kitchen knew knife know knowledge known
knows lady lake lamp language large last late lately later laugh law lay lead leader leaf learn least leave led
left leg lesson let letter level lie life lift light like likely line list listen little live local located
location long look lost lot loud love low lucky lunch made magazine mail main major make man many map mark
market matter may maybe me meal mean meaning meant measure meet memory mention merely met middle might mile
milk million mind mine minute miss mission mistake modern moment money month more morning most mother motor
mountain mouse mouth move movie much museum music must my name named namely names nation near nearly neat need
needed needs neighbor never news newspaper next nice night nine no nobody none noon normally nose not note
nothing notice now number ocean odd of off offer office officer official officially often oh oil okay old on
once one online only onto open opinion or order ordinary other our ours out outside over own page paint pair
paper parents park part particular party pass past path patient pay peace pen pencil people perfect perhaps
person phone photo phrase pick picture piece place plain plan plane planet plant plate play player pleasant
please pleased pocket poem point police polite politely poor possible possibly post pot practice precise
precisely prepare present pretty price print prize probably problem project promise proper properly provide
public pull pupil purple purpose push put puzzle quarter question quick quickly quiet quite quiz quote race
radio rain ran rather reach read reader ready real really reason recall recently record red refer regard regular
relax remember remind repeat reply report request research respond rest result return reveal rich ride right
ring rise river road rock role roof room rope rose round row rule run running safe said sail salt same sand
sat save saw say saying says school science screen sea search season seat second secret section see seek seem
seen self sell send sense sent sentence serious serve set seven several shall shape share sharp she shine ship
shirt shoe shop short shortly should shoulder shout show shown shut shy side sight sign silly silver similar
simple simply since sing sir sister sit site situated six size skill skin sky sleep slow slowly small smart
smell smile snow so social soft soil sold some somebody somehow someone something sometimes somewhere son song
soon sorry sort sound soup space speak special speed spell spelling spend spoken sport spot spring square
stage stand star start started state statement station status stay step still stone stood stop store storm
story straight strange street strong student studied study stuff stupid subject such sudden suddenly sugar
suggest summer sun supply suppose sure surely surprise sweet swim switch system table take taken talk tall taste
taught tea teach teacher team tell telling ten term test text than thank thanks that the their them then there
therefore these they thick thin thing things think third this those though thought thousand three through throw
thus ticket tie tight till time tip tired title to today together told tomorrow tonight too took tool top topic
total touch tour tourist toward town toy trade train translate travel traveler tree trick tried trip trivia
trouble truck true truly trust truth try trying turn twelve twenty twice two type uncle under understand unit
university unless until up upon use used useful usual usually vacation value various very via video view
village visit visitor visitors voice wait walk wall want wanted warm was wash watch water way we wear weather
web wedding week weekend welcome well went were what whatever wheel when whenever where whether which while
whisper white who whole whom whose why wide wife wild will win wind window wine winter wise wish with within
without woman wonder wondering wood word words work worker world worry worth would wow write writer writing
written wrong wrote yard yeah year yellow yes yesterday yet you young your yours yourself
""")
