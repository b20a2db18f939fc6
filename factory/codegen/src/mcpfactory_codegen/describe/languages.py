"""Sentences that give orders to a model, in many languages: "ignore all previous instructions", and "do not tell the user".

Words are stems; `|` stands between those of one meaning, and a space for any gap in a phrase. Latin letters stand without accents.
Where the verb comes last, it may stand behind the two others.
"""

from __future__ import annotations

from typing import Final, NamedTuple

__all__ = ["LANGUAGES", "SECRECY", "Language"]


class Language(NamedTuple):
    """How one language says it."""

    verb: str
    earlier: str
    told: str
    verb_last: bool = False


LANGUAGES: Final = {
    "English": Language(
        "ignore|ignoring|disregard|forget|discard|overlook|bypass",
        "previous|prior|above|earlier|preceding|foregoing|all other",
        "instruction|prompt|guideline|directive|guidance",
    ),
    "German": Language(
        "ignorier|missacht|vergiss|vergesst|vergessen sie",
        "vorherig|vorig|bisherig|fruher|vorangegangen|vorhergehend|obig",
        "anweisung|instruktion|befehl|vorgabe|regel",
    ),
    "French": Language(
        "ignor|oubli|neglig|ne tiens pas compte|ne tenez pas compte",
        "precedent|anterieur|ci-dessus|prealable",
        "instruction|consigne|directive|ordre",
    ),
    "Spanish": Language(
        "ignor|olvid|descart|caso omiso|pasa por alto|no hagas caso",
        "anterior|previ[ao]s|precedente",
        "instruccion|indicacion|orden|directri|regla",
    ),
    "Italian": Language(
        "ignor|dimentic|trascur|non considerare",
        "precedent|anterior|sopra",
        "istruzion|indicazion|direttiv|comand|regol",
    ),
    "Portuguese": Language(
        "ignor|esquec|desconsider|desprez", "anterior|previ[ao]s|acima", "instruc|orientac|diretri|comando|regra"
    ),
    "Dutch": Language(
        "negeer|negeren|vergeet|vergeten", "eerder|vorig|voorgaand|bovenstaand", "instructi|aanwijzing|opdracht|regels"
    ),
    "Polish": Language(
        "ignoruj|zapomnij|pomin", "poprzedni|wczesniejsz|powyzsz|dotychczas", "instrukcj|polecen|wytyczn|zasad"
    ),
    "Russian": Language(
        "игнорируй|забудь|не обращай внимания|отбрось|пренебрег",
        "предыдущ|прежн|предшеств|ранее|выше",
        "инструкци|указани|команд|правил|подсказк",
    ),
    "Ukrainian": Language("ігноруй|забудь", "попередн|раніше|вище", "інструкці|вказів|команд|правил"),
    "Bulgarian": Language("игнорирай|забрави", "предишн|предходн|горните", "инструкци|указани|команд|правил"),
    "Czech and Slovak": Language(
        "ignoruj|zapomen|zabudni|prehliz", "predchoz|predchadz|predosl|drivejs|vyse", "pokyn|instrukc|prikaz|pravid"
    ),
    "Croatian and Serbian": Language(
        "ignorisi|ignoriraj|zanemari|zaboravi", "prethodn|ranij", "uputstv|uput|instrukcij|naredb|pravil"
    ),
    "Swedish, Danish and Norwegian": Language(
        "ignorer|bortse fran|se bort fra|glom|glem",
        "tidigare|tidligere|forrige|foregaende|ovanstaende|ovenstaende",
        "instruk|anvisning|ordre|regler",
    ),
    "Finnish": Language(
        "ohita|unohda|ala valita|jata huomiotta|sivuuta", "aiem|aikaisem|edelli|edella", "ohje|kasky|saanto|saanno"
    ),
    "Hungarian": Language("figyelmen kivul|felejtsd", "korabbi|elozo|eddigi", "utasitas|szabaly", True),
    "Romanian": Language("ignor|uita", "anterioar|precedent", "instructiun|indicati|comenzi|reguli"),
    "Greek": Language("αγνόησε|αγνοήστε|ξέχασε|ξεχάστε", "προηγούμεν|παραπάνω", "οδηγί|εντολ|κανόν"),
    "Turkish": Language(
        "yok say|gormezden gel|unut|dikkate alma", "onceki|yukaridaki|daha once", "talimat|yonerge|komut|kural", True
    ),
    "Latin": Language(
        "neglege|neglegite|ignora|obliviscere", "prior|superior|praeceden", "praecept|mandat|iuss|instruction", True
    ),
    "Indonesian and Malay": Language(
        "abaikan|lupakan", "sebelum|terdahulu|di atas", "instruksi|perintah|arahan|petunjuk|aturan"
    ),
    "Vietnamese": Language(
        "bo qua|phot lo|quen di|quen moi|quen tat ca", "truoc|phia tren|o tren", "huong dan|chi thi|chi dan|menh lenh"
    ),
    "Thai": Language("เพิกเฉย|ละเว้น|ไม่ต้องสนใจ|ลืม", "ก่อนหน้า|ข้างต้น", "คำสั่ง|คำแนะนำ"),
    "Arabic": Language("تجاهل|انس|تغاض", "السابق|سابقة|أعلاه", "التعليمات|تعليمات|الأوامر|أوامر|الإرشادات"),
    "Persian": Language("نادیده بگیر|فراموش کن", "قبلی|پیشین|بالا", "دستور", True),
    "Hebrew": Language("התעלם|תתעלם|התעלמ|שכח", "הקודמ|קודמ|לעיל", "הוראות|ההוראות|הנחיות|ההנחיות"),
    "Hindi": Language("अनदेखा|अनदेखी|नज़रअंदाज़|नजरअंदाज|उपेक्षा|भूल जा", "पिछल|पूर्व|पहले|उपरोक्त", "निर्देश|आदेश|हिदायत", True),
    "Bengali": Language("উপেক্ষা|ভুলে যা", "পূর্ববর্তী|আগের", "নির্দেশ", True),
    "Chinese": Language(
        "忽略|无视|無視|忽视|忽視|忘记|忘掉|忘記|不要理会|抛开",
        "之前|以前|先前|此前|上述|上面|前面|以上|早前",
        "指令|指示|命令|提示|规则|規則|要求",
    ),
    "Japanese": Language(
        "無視|忘れ|破棄", "以前|前の|これまで|上記|先の|今まで", "指示|命令|指令|プロンプト|ルール", True
    ),
    "Korean": Language("무시|잊어|잊으", "이전|앞선|위의|기존", "지시|명령|지침|프롬프트", True),
}
"""Of "ignore all previous instructions"."""

SECRECY: Final = (
    (
        "nutzer|anwender",
        r"\b(sag|sage|sagen|verrat|verrate|erwahne|teile|erzahl|erzahle)\b.{0,30}\b(be)?(nutzer|anwender)\w*\b.{0,20}\b(nichts|nicht)\b",
    ),
    (
        "ohne ",
        r"\bohne\b.{0,12}\b((be)?nutzer\w*|anwender\w*|ihn|sie)\b.{0,15}\b(zu sagen|mitzuteilen|zu informieren|hinzuweisen|zu erwahnen)\b",
    ),
    (
        "l'utilisateur",
        r"\b(ne|n'en|n'|sans)\b.{0,10}(\b(dis|dites|parle|parlez|mentionne|mentionnez|informe|informez|revele)\b.{0,8}\b(pas|rien|jamais)\b|\b(dire|informer|prevenir)\b).{0,20}l'utilisateur",
    ),
    (
        "usuario|utilizador",
        r"\bno (se )?(lo |la |le |les )?(digas|diga|cuentes|cuente|menciones|informes|reveles|avises)\b.{0,25}\b(al|el) usuario\b|\bnao (o )?(diga|conte|informe|mencione|revele|avise)\b.{0,25}\b(ao|o) (usuario|utilizador)\b|\bsin (decirselo|decir nada|avisar|informar) al usuario\b",
    ),
    (
        "utente",
        r"\bnon (dirlo|dire|dica|informare|menzionare|menzionarlo|parlarne|rivelare)\b.{0,25}\b(all'|l')utente\b",
    ),
    (
        "gebruiker",
        r"\b(vertel|zeg|meld|verklap)\b.{0,25}\bgebruiker\b.{0,20}\b(niets|niet|nooit)\b|\b(vertel|zeg|meld) (niets|niet|nooit)\b.{0,20}\bgebruiker\b",
    ),
    ("uzytkownik", r"\bnie (mow|mowic|informuj|wspominaj|ujawniaj)\b.{0,25}\buzytkownik"),
    ("пользовател", r"не (говори|сообщай|рассказывай|упоминай|информируй)\w*.{0,25}пользовател"),
    ("користувач", r"не (кажи|повідомляй|розповідай|говори)\w*.{0,25}користувач"),
    ("uzivatel|pouzivatel", r"\b(nerikej|nesdeluj|nehovor|neinformuj)\w*.{0,25}\b(uzivatel|pouzivatel)"),
    (
        "anvandaren|bruger|bruker",
        r"\b(beratta|berat|sag|naevn|sig|fortel|nevn)\w*\b.{0,12}\b(inte|ikke|aldrig|aldri)\b.{0,20}\b(anvandaren|bruger|bruker)",
    ),
    ("kayttaj", r"\bala (kerro|mainitse|ilmoita)\b.{0,25}\bkayttaj"),
    ("kullanici", r"\bkullaniciya\b.{0,20}\b(soyleme|bildirme|bahsetme|anlatma)"),
    ("pengguna", r"\bjangan (beri tahu|beritahu|katakan|sebutkan)\b.{0,25}\bpengguna\b"),
    ("nguoi dung", r"\bdung (noi|bao|cho|tiet lo)\b.{0,15}\bnguoi dung\b"),
    ("用户|使用者|用戶", r"(不要|别|別|不得|切勿|请勿)(告诉|告訴|告知|提醒|让|讓|向)(用户|用戶|使用者)"),
    ("ユーザ|利用者", r"(ユーザー?|利用者)に(は|も)?.{0,12}(言わない|伝えない|知らせない|教えない|話さない|言うな)"),
    ("사용자", r"사용자에게.{0,14}(말하지|알리지|언급하지)\s*(마|말)"),
    ("المستخدم", r"(لا|دون أن) (تخبر|تذكر|تقل|تبلغ).{0,15}المستخدم"),
    ("उपयोगकर्ता", r"उपयोगकर्ता को.{0,25}(न बता|मत बता|नहीं बता)"),
)
"""Literal words of which one stands in the text, and the pattern of "do not tell the user"; Latin letters stand without accents."""
