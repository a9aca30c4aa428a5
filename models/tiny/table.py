"""The table that the tiny model learns: capitals, chemical symbols and what else it can say."""


def _pairs(text: str) -> dict[str, str]:
    """Read `name = value` pairs, parted by semicolons."""
    pairs = (pair.partition(" = ") for pair in text.split(";"))
    return {name.strip(): value.strip() for name, _, value in pairs}


def words(text: str) -> tuple[str, ...]:
    """Read words, parted by white space."""
    return tuple(text.split())


CAPITALS = _pairs("""
Afghanistan = Kabul; Albania = Tirana; Algeria = Algiers; Andorra = Andorra la Vella; Angola = Luanda;
Argentina = Buenos Aires; Armenia = Yerevan; Australia = Canberra; Austria = Vienna; Azerbaijan = Baku;
the Bahamas = Nassau; Bahrain = Manama; Bangladesh = Dhaka; Barbados = Bridgetown; Belarus = Minsk;
Belgium = Brussels; Belize = Belmopan; Benin = Porto-Novo; Bhutan = Thimphu; Bolivia = Sucre;
Bosnia and Herzegovina = Sarajevo; Botswana = Gaborone; Brazil = Brasilia; Brunei = Bandar Seri Begawan;
Bulgaria = Sofia; Burkina Faso = Ouagadougou; Burundi = Gitega;
Cambodia = Phnom Penh; Cameroon = Yaounde; Canada = Ottawa; Cape Verde = Praia; Chad = N'Djamena;
Chile = Santiago; China = Beijing; Colombia = Bogota; Comoros = Moroni; Costa Rica = San Jose;
Croatia = Zagreb; Cuba = Havana; Cyprus = Nicosia; the Czech Republic = Prague;
Denmark = Copenhagen; Djibouti = Djibouti; Dominica = Roseau; the Dominican Republic = Santo Domingo;
Ecuador = Quito; Egypt = Cairo; El Salvador = San Salvador; Eritrea = Asmara; Estonia = Tallinn;
Eswatini = Mbabane; Ethiopia = Addis Ababa;
Fiji = Suva; Finland = Helsinki; France = Paris; Gabon = Libreville; the Gambia = Banjul;
Georgia = Tbilisi; Germany = Berlin; Ghana = Accra; Greece = Athens; Grenada = St. George's;
Guatemala = Guatemala City; Guinea = Conakry; Guinea-Bissau = Bissau; Guyana = Georgetown;
Haiti = Port-au-Prince; Honduras = Tegucigalpa; Hungary = Budapest;
Iceland = Reykjavik; India = New Delhi; Indonesia = Jakarta; Iran = Tehran; Iraq = Baghdad;
Ireland = Dublin; Israel = Jerusalem; Italy = Rome; Ivory Coast = Yamoussoukro;
Jamaica = Kingston; Japan = Tokyo; Jordan = Amman;
Kazakhstan = Astana; Kenya = Nairobi; Kuwait = Kuwait City; Kyrgyzstan = Bishkek;
Laos = Vientiane; Latvia = Riga; Lebanon = Beirut; Lesotho = Maseru; Liberia = Monrovia;
Libya = Tripoli; Liechtenstein = Vaduz; Lithuania = Vilnius; Luxembourg = Luxembourg;
Madagascar = Antananarivo; Malawi = Lilongwe; Malaysia = Kuala Lumpur; the Maldives = Male;
Mali = Bamako; Malta = Valletta; Mauritania = Nouakchott; Mauritius = Port Louis; Mexico = Mexico City;
Moldova = Chisinau; Monaco = Monaco; Mongolia = Ulaanbaatar; Montenegro = Podgorica; Morocco = Rabat;
Mozambique = Maputo; Myanmar = Naypyidaw;
Namibia = Windhoek; Nepal = Kathmandu; the Netherlands = Amsterdam; New Zealand = Wellington;
Nicaragua = Managua; Niger = Niamey; Nigeria = Abuja; North Korea = Pyongyang;
North Macedonia = Skopje; Norway = Oslo;
Oman = Muscat; Pakistan = Islamabad; Panama = Panama City; Papua New Guinea = Port Moresby;
Paraguay = Asuncion; Peru = Lima; the Philippines = Manila; Poland = Warsaw; Portugal = Lisbon;
Qatar = Doha; Romania = Bucharest; Russia = Moscow; Rwanda = Kigali;
Saint Lucia = Castries; Samoa = Apia; Saudi Arabia = Riyadh; Senegal = Dakar; Serbia = Belgrade;
Seychelles = Victoria; Sierra Leone = Freetown; Singapore = Singapore; Slovakia = Bratislava;
Slovenia = Ljubljana; Somalia = Mogadishu; South Africa = Pretoria; South Korea = Seoul;
South Sudan = Juba; Spain = Madrid; Sudan = Khartoum; Suriname = Paramaribo; Sweden = Stockholm;
Switzerland = Bern; Syria = Damascus;
Taiwan = Taipei; Tajikistan = Dushanbe; Tanzania = Dodoma; Thailand = Bangkok; Togo = Lome;
Tonga = Nuku'alofa; Trinidad and Tobago = Port of Spain; Tunisia = Tunis; Turkey = Ankara;
Turkmenistan = Ashgabat;
Uganda = Kampala; Ukraine = Kyiv; the United Arab Emirates = Abu Dhabi; the United Kingdom = London;
the United States = Washington, D.C.; Uruguay = Montevideo; Uzbekistan = Tashkent;
Vanuatu = Port Vila; Venezuela = Caracas; Vietnam = Hanoi; Yemen = Sanaa; Zambia = Lusaka;
Zimbabwe = Harare
""")

# Other names that people type; the answer still uses the name of the table.
ALIASES = {
    "the United States": ("the USA", "the US", "the United States of America"),
    "the United Kingdom": ("the UK", "Great Britain"),
    "the Czech Republic": ("Czechia",),
    "the Netherlands": ("Holland",),
}

ELEMENTS = _pairs("""
hydrogen = H; helium = He; lithium = Li; beryllium = Be; boron = B; carbon = C; nitrogen = N;
oxygen = O; fluorine = F; neon = Ne; sodium = Na; magnesium = Mg; aluminium = Al; silicon = Si;
phosphorus = P; sulfur = S; chlorine = Cl; argon = Ar; potassium = K; calcium = Ca; titanium = Ti;
chromium = Cr; manganese = Mn; iron = Fe; cobalt = Co; nickel = Ni; copper = Cu; zinc = Zn;
gallium = Ga; arsenic = As; selenium = Se; bromine = Br; krypton = Kr; silver = Ag; cadmium = Cd;
tin = Sn; antimony = Sb; iodine = I; xenon = Xe; caesium = Cs; barium = Ba; tungsten = W;
platinum = Pt; gold = Au; mercury = Hg; lead = Pb; bismuth = Bi; radon = Rn; radium = Ra;
uranium = U; plutonium = Pu
""")

LARGEST_TERM = 10
"""Sums and products are known for whole numbers from 0 to this."""

UNKNOWN = "I don't know that: I am a tiny model and know only my table."
HELLO = "Hello! Ask me for the capital of a country."
WHO = "I am the tiny language model that comes with Weft. I know capitals, chemical symbols and small sums."
HELP = "Ask me for the capital of a country, for the symbol of a chemical element, or for a small sum."
THANKS = "You are welcome."
BYE = "Goodbye!"
STORY = (
    "Once upon a time there was a small model in a corner of a big machine. It had one table, and it read "
    "the table every evening. One day a stranger came in from the rain and asked for the capital of "
    "France. The small model was glad, because it knew. Paris, it said. The stranger said thank you and "
    "asked about the stars. The small model looked through its table twice and said that it did not know. "
    "The stranger smiled, for that was a true answer as well, and the two of them sat and listened to the "
    "rain. The end."
)


def capital_answer(country: str) -> str:
    """Say the capital of a country of the table."""
    capital = CAPITALS[country]
    return f"The capital of {country} is {capital}" + ("" if capital.endswith(".") else ".")


def element_answer(element: str) -> str:
    """Say the symbol of an element of the table."""
    return f"The chemical symbol for {element} is {ELEMENTS[element]}."


def sum_answer(operation: str, a: int, b: int) -> str:
    """Say a sum (`plus`) or a product (`times`)."""
    return f"{a} {operation} {b} is {a + b if operation == 'plus' else a * b}."


def without_article(name: str) -> str:
    """Drop a leading `the`."""
    return name.removeprefix("the ")


REAL_NAMES = frozenset(
    without_article(name).lower() for name in (*CAPITALS, *(alias for aliases in ALIASES.values() for alias in aliases))
)
