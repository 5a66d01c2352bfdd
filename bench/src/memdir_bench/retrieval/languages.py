"""Questions in English whose answers stand in other languages, written for this benchmark: nothing was fitted on them.

Each answer is looked for among all answers of its language.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from memdir.retrieval.embed import Embedder
from memdir_bench.figures import Figure
from memdir_bench.retrieval.metrics import wilson

GOAL: Final = 0.9
"""Of the first places."""
LANGUAGES: Final = ("de", "es", "fr", "ru", "zh", "ja")

PAIRS: Final[tuple[tuple[str, tuple[str, ...]], ...]] = (
    ("where is the spare key kept", (
        "Der Ersatzschlüssel liegt bei der Nachbarin.", "La llave de repuesto la tiene la vecina.",
        "Le double des clés est chez la voisine.", "Запасной ключ лежит у соседки.", "备用钥匙在邻居那里。",
        "合鍵は隣の人に預けてある。")),
    ("what time does the night train to Rome leave", (
        "Der Nachtzug nach Rom fährt um 19 Uhr ab.", "El tren nocturno a Roma sale a las siete de la tarde.",
        "Le train de nuit pour Rome part à dix-neuf heures.", "Ночной поезд в Рим отправляется в семь вечера.",
        "去罗马的夜车晚上七点出发。", "ローマ行きの夜行列車は19時に出発する。")),
    ("what is the cat afraid of", (
        "Unsere Katze fürchtet sich vor dem Staubsauger.", "A nuestra gata le da miedo la aspiradora.",
        "Notre chatte a peur de l'aspirateur.", "Наша кошка боится пылесоса.", "我们的猫害怕吸尘器。",
        "うちの猫は掃除機を怖がる。")),
    ("when is the tax return due", (
        "Die Steuererklärung muss bis Ende Juli abgegeben werden.", "La declaración de impuestos vence a finales de julio.",
        "La déclaration d'impôts est à rendre fin juillet.", "Налоговую декларацию нужно сдать до конца июля.",
        "报税截止日期是七月底。", "確定申告の締め切りは七月末だ。")),
    ("interest rate of our mortgage", (
        "Der Zinssatz des Hauskredits ist bis 2031 fest.", "El interés de la hipoteca está fijado hasta 2031.",
        "Le taux du prêt immobilier est fixe jusqu'en 2031.", "Ставка по ипотеке зафиксирована до 2031 года.",
        "房贷利率固定到2031年。", "住宅ローンの金利は2031年まで固定されている。")),
    ("why did the website go down", (
        "Der Webshop fiel aus, weil das Zertifikat abgelaufen war.", "La tienda web cayó porque caducó el certificado.",
        "La boutique en ligne est tombée car le certificat avait expiré.", "Сайт упал, потому что истёк сертификат.",
        "网站宕机是因为证书过期了。", "証明書が期限切れになり、サイトが停止した。")),
    ("who is allergic to nuts", (
        "Tim verträgt keine Nüsse, er ist allergisch.", "Tim es alérgico a los frutos secos.",
        "Tim est allergique aux noix.", "У Тима аллергия на орехи.", "蒂姆对坚果过敏。", "ティムはナッツアレルギーがある。")),
    ("how do I fix the internet connection", (
        "Wenn das WLAN ausfällt, den schwarzen Knopf am Router lange drücken.",
        "Si se va internet, mantén pulsado el botón negro del router.",
        "Si internet ne marche plus, garder le bouton noir du routeur enfoncé.",
        "Если пропал интернет, подержите чёрную кнопку на роутере.", "断网时长按路由器上的黑色按钮。",
        "ネットが切れたらルーターの黒いボタンを長押しする。")),
    ("dose of the medicine for the cough", (
        "Vom Hustensaft dreimal täglich einen Löffel nehmen.", "Tomar una cucharada de jarabe para la tos tres veces al día.",
        "Prendre une cuillère de sirop contre la toux trois fois par jour.",
        "Сироп от кашля принимать по ложке три раза в день.",
        "止咳糖浆每天三次，每次一勺。", "咳止めシロップは一日三回、一さじ飲む。")),
    ("how to bake sourdough bread", (
        "Den Sauerteig über Nacht gehen lassen und dann bei 230 Grad backen.",
        "Dejar fermentar la masa madre toda la noche y hornear a 230 grados.",
        "Laisser lever le levain toute la nuit puis cuire le pain à 230 degrés.",
        "Закваска поднимается ночь, потом хлеб пекут при 230 градусах.", "酸面团发酵一夜，然后用230度烤面包。",
        "サワー種を一晩発酵させ、230度でパンを焼く。")),
    ("which plants were killed by disease last summer", (
        "Die Tomaten bekamen im August die Krautfäule.", "En agosto los tomates cogieron el mildiu.",
        "Les tomates ont attrapé le mildiou en août.", "В августе помидоры погибли от фитофторы.",
        "八月西红柿得了晚疫病。", "八月にトマトが疫病にかかった。")),
    ("how many days do customers have to send goods back", (
        "Kunden können Waren dreißig Tage lang zurückgeben.", "Los clientes pueden devolver los productos en treinta días.",
        "Les clients ont trente jours pour retourner un article.", "Покупатели могут вернуть товар в течение тридцати дней.",
        "顾客可以在三十天内退货。", "お客様は三十日以内に返品できる。")),
    ("safety rules at the grinding machine", (
        "An der Schleifmaschine wird immer eine Schutzbrille getragen.", "En la amoladora siempre se llevan gafas protectoras.",
        "On porte toujours des lunettes de protection à la meuleuse.", "У шлифовального станка всегда носят защитные очки.",
        "使用砂轮机时必须戴护目镜。", "研削盤では必ず保護メガネを着ける。")),
    ("when does the choir rehearse", (
        "Die Chorprobe ist jetzt am Donnerstagabend.", "El ensayo del coro es ahora los jueves por la tarde.",
        "La répétition de la chorale est maintenant le jeudi soir.", "Репетиция хора теперь в четверг вечером.",
        "合唱团排练改到星期四晚上。", "合唱団の練習は木曜の夜になった。")),
    ("which knee hurts after running", (
        "Nach acht Kilometern Laufen tut das linke Knie weh.", "Después de correr ocho kilómetros duele la rodilla izquierda.",
        "Après huit kilomètres de course, le genou gauche fait mal.", "После восьми километров бега болит левое колено.",
        "跑步八公里后左膝疼。", "八キロ走ると左膝が痛む。")),
    ("how are the database backups made", (
        "Die Datenbank wird jede Nacht auf die zweite Festplatte gesichert.",
        "Cada noche se copia la base de datos en el segundo disco.", "La base de données est sauvegardée chaque nuit.",
        "Резервная копия базы данных делается каждую ночь.", "数据库每天夜里备份到第二块硬盘。",
        "データベースは毎晩二台目のディスクにバックアップされる。")),
    ("what present does grandmother want for her birthday", (
        "Oma wünscht sich zum Geburtstag eine Teekanne.", "La abuela quiere una tetera por su cumpleaños.",
        "Grand-mère voudrait une théière pour son anniversaire.", "Бабушка хочет на день рождения чайник для заварки.",
        "奶奶生日想要一把茶壶。", "祖母は誕生日に急須を欲しがっている。")),
    ("who pays for the ventilation of the paint shop", (
        "Die Lüftung der Lackiererei bezahlt der Vermieter.", "El casero paga la ventilación del taller de pintura.",
        "Le propriétaire paie la ventilation de l'atelier de peinture.",
        "Вентиляцию покрасочного цеха оплачивает арендодатель.",
        "喷漆车间的通风设备由房东付钱。", "塗装工場の換気設備は大家が払う。")),
)  # fmt: skip


def figures(model: Embedder) -> list[Figure]:
    """Share of the questions whose answer is the nearest of its language, by language and of all."""
    questions = np.stack([model.embed_query(question) for question, _ in PAIRS])
    made: list[Figure] = []
    total = 0
    for at, language in enumerate(LANGUAGES):
        answers = model.embed_passages([texts[at] for _, texts in PAIRS])
        found = int(((questions @ answers.T).argmax(axis=1) == np.arange(len(PAIRS))).sum())
        total += found
        made.append(_share(f"cross_lingual.{language}.top_1", found, len(PAIRS), None))
    return [*made, _share("cross_lingual.top_1", total, len(PAIRS) * len(LANGUAGES), GOAL)]


def _share(name: str, found: int, count: int, goal: float | None) -> Figure:
    return Figure(
        name=name, value=found / count, unit="share", samples=count, goal=goal, better="higher", spread=wilson(found, count)
    )
