"""What people know of themselves, and what they note of ordinary days, on which nothing of it changes."""

from __future__ import annotations

FACTS = """\
I live in Berlin with my wife Karin and our son Leo.
I work at Siemens as a data engineer.
My boss is Helena.
I drive a grey Skoda Octavia.
We have a dog called Bello.
I play the piano and take lessons on Tuesdays.
I go to the gym on Mondays and Thursdays.
I'm allergic to peanuts.
I don't drink coffee.
I'm vegetarian.
My dentist is Dr. Okafor.
I use Obsidian for all my notes.
My laptop is a ThinkPad.
We rent a flat on the third floor.
The standup is at 9:30.
I owe Karim 40 euros.
I'm reading Middlemarch.
I'm training for the Rotterdam half.
I'm looking for a new apartment.
The heating is broken.
Mum lives in Hamburg.
My sister Nina works at Bosch.
The release is planned for 15 March.
I have a subscription to the Guardian.
Leo is in second grade.
The car is in the garage for repairs.
I have a dentist appointment on 4 June.
We use Slack at work.
I take the train to work.
I prefer tea in the morning.
Production runs on Heroku.
Sven is our lead developer.
Our cleaner comes on Fridays.
My phone number is 0171 555 0101.
I have a weekly call with Daniel on Wednesdays.
""".splitlines()
DAYS = """\
Left the office at six and took the train home.
Train cancelled, took the bus instead.
Finished the quarterly report for Siemens.
Helena was off sick today.
Sold two old lamps on eBay.
Bello got sick after eating grass.
Bello is fine again.
Skipped the gym, too tired.
Paid the Guardian invoice.
Paid Anna 20 euros for the tickets.
Read thirty pages of Middlemarch before bed.
Ran 12 km, knee hurt a bit.
Saw an apartment in Neukölln, way too expensive.
Mum came to visit, we cooked together.
Nina called, she is tired of her project.
Slack was down for an hour.
Closed the garage door and found a dent in the Skoda.
Moved the piano to the other wall.
Moved two meetings to next week.
Leo lost a tooth.
Leo's class trip was cancelled.
Dropped Leo off at school and bought bread.
Changed the strings of the guitar.
Karin is in Munich until Friday.
Karin is back from Munich.
Had coffee with Karim, talked about his new job.
Ate at a vegetarian place, the meat eaters were jealous.
Took the ThinkPad apart and cleaned the fan.
The heating man came and could not fix it.
Production was slow, restarted Heroku dynos.
Sven gave a demo of the new search.
The cleaner broke a vase.
Deleted 3,000 old photos from my phone.
Daniel cancelled our call today.
Standup took forever.
Shut the laptop at nine and watched a film.
Left my phone at work.
Got rid of the old sofa.
No more milk, went to the shop.
Threw away the old train tickets.
Stopped at the bakery on the way home.
Quit the meeting early.
Cancelled the hotel in Rome.
The release notes are done.
The bug in the release script is fixed.
Finished painting the hallway.
Got a new book from the library, stopped reading after ten pages.
Our neighbours sold their flat.
My colleague Tom quit.
Tom's dog died.
Hamburg was rainy, as always.
Anna doesn't live in Berlin any more.
The gym was closed today.
Turned the heating off for the night.
Switched seats with Sven during the workshop.
Ended the day with a glass of wine.
Broke my glasses, need new ones.
Dropped the piano book in the bath.
Gave Leo his old bike back.
""".splitlines()
FACTS_IN_OTHER_LANGUAGES = """\
')[0])
facts=
""".splitlines()
DAYS_IN_OTHER_LANGUAGES = """\
Um sechs das Büro verlassen und mit dem Zug nach Hause.
Zug ausgefallen, mit dem Bus gefahren.
Den Bericht für Siemens fertiggestellt.
Herr Weber war heute krank.
Zwei alte Lampen verkauft.
Bello hat Gras gefressen und war krank.
Karin ist bis Freitag in München.
Mit Karim Kaffee getrunken.
Dreißig Seiten Zauberberg gelesen.
Eine Wohnung in Neukölln angesehen, viel zu teuer.
Mama hat angerufen.
Die Rechnung der Zeit bezahlt.
Anna die 20 Euro zurückgezahlt.
12 km gelaufen, Knie tut weh.
Die Heizung für die Nacht ausgeschaltet.
Der Monteur war da und konnte die Heizung nicht reparieren.
Den Fernseher ausgeschaltet und ins Bett.
Leo hat einen Zahn verloren.
Die Putzfrau hat eine Vase zerbrochen.
Keine Milch mehr, also einkaufen.
Nicht mehr viel geschafft heute.
Das Standup hat ewig gedauert.
Die Release Notes sind fertig.
Das Klavier gestimmt.
Den Müll rausgebracht, Türen geschlossen.
Ein Paket bei der Post abgegeben.
Ein Buch gekauft.
Heute nicht mehr zum Sport.
Toby comió hierba.
Cerré el gimnasio a las diez porque hoy abría yo.
Terminé el informe.
Pablo me dio el día libre.
Encontré veinte euros en la calle.
Vendí dos libros viejos.
Ya no quedaba leche.
Pagué la calefacción de enero.
J'ai lavé la Renault.
J'ai fini tard.
Le cours de piano est annulé aujourd'hui.
J'ai acheté du pain.
Paul est parti tôt.
Plus de lait, je suis allé au magasin.
J'ai payé le cours de piano.
J'ai rendu un livre à la bibliothèque.
""".splitlines()
