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

OF_PEOPLE = """\
I live in Porto.
I work at Nexia.
I'm a nurse.
I'm allergic to nuts.
My birthday is 3 May.
I like green tea.
I have two kids.
I'm married to Ana.
My wife Ana works at the museum.
My manager is Marta.
My sister Jule lives in Bremen.
My brother is a pilot.
Jonas lives in Halle.
Jonas is my best friend.
Jonas is allergic to cats.
Jonas works at Tessera.
Jonas plays the cello.
Jonas has a dog called Rex.
Priya owns ingestion.
Priya is on call this week.
Priya prefers calls over mail.
Tom is our designer.
Tom's email is tom@example.org.
My mother lives in Kiel.
My father is a retired teacher.
We have a cat called Miso.
My car is a Golf.
I ride a Brompton.
I play guitar.
I run on Tuesdays.
I go to the gym on Mondays.
I use Vim.
My laptop is a ThinkPad.
I bank with N26.
My phone number is 0151 2345678.
My dentist is Dr. Pahl.
I take metformin.
I drink coffee without sugar.
My rent is 900 euros.
Standup is at 9:30.
Heron is written in Go.
Heron runs on Postgres.
Heron ships in March.
Deploys run on Fridays.
The wifi network is called Attic.
I prefer short answers.
I speak Portuguese.
I am left-handed.
I wear size 39.
My favourite band is Low.
The kids go to Waldschule.
Our landlord is Herr Wendt.
I'm learning Dutch.
I'm training for a marathon.
I'm vegetarian.
My desk is on the second floor.
The spare key is with Marlene.
My son Theo is in third grade.
I vote by mail.
I'm reading Middlemarch.
""".splitlines()
"""What is known of the user, their people and their work."""
HAPPENED = """\
Jonas called.
Jonas is ill.
Jonas is back from Porto.
Jonas got a cold.
Jonas is gone for the week.
Jonas was here.
Jonas moved his appointment to Friday.
Jonas switched off the light.
Jonas changed his shirt.
Jonas lost his keys.
Jonas sold his old bike.
Jonas stopped by.
Jonas left early.
Jonas left his jacket here.
Jonas quit the chess game.
Jonas cancelled on us.
Jonas finished the cake.
Jonas gave up his seat.
Jonas dropped the glass.
Jonas is fine again.
Jonas is done.
Jonas is out.
Jonas is over it.
Jonas is late.
Jonas is free on Sunday.
Priya is back.
Priya fixed the pipeline.
Priya moved the meeting.
Priya finished ingestion.
Priya is done with the review.
Priya took over the review from Tom.
Priya and I had lunch.
Tom is out sick.
Tom is on holiday.
Tom handed in the drafts.
Tom is leaving early today.
Marta approved the plan.
Marta is away.
Marta moved our one-on-one to Friday.
Ana is away this week.
Ana is tired.
Ana is out.
Ana left at eight.
Ana took the car.
Ana moved the sofa.
Ana got her hair cut.
Ana finished her book.
The kids are away.
The kids are done with homework.
The kids left for camp.
The kids have no school today.
Miso is gone again.
Miso is back.
Miso broke a vase.
The Golf is in the garage.
The Golf broke down.
The Golf is fixed.
Washed the car.
Took the train today.
Left the Brompton at work.
My Brompton is in the shop.
The gym was closed.
The gym is closed on Monday.
No gym today.
No run this Tuesday.
Skipped the run.
My guitar needs strings.
Broke a string on the guitar.
Vim crashed twice.
Closed Vim and went home.
The ThinkPad froze.
The laptop is at the repair shop.
N26 was down.
N26 sent a new card.
My phone is broken.
Lost my phone.
Called the dentist.
The dentist is closed.
Forgot the metformin.
Took metformin late.
Out of metformin.
No coffee today.
No sugar in the house.
Ran out of coffee.
Paid the rent.
The rent is paid.
Standup was cancelled.
Standup was short.
Standup moved to the big room.
No standup today.
Heron is down.
Heron is green again.
Heron crashed.
Heron is done for today.
Heron was on the agenda.
Merged the Heron branch.
Deploy failed.
Deploy is done.
No deploy this Friday.
The wifi is down.
The wifi is back.
Restarted the wifi.
Portuguese lesson was fun.
No Portuguese lesson this week.
My left hand hurts.
The shoes were too small.
Heard a new band.
Low played in town.
Waldschule is closed today.
Herr Wendt called.
Herr Wendt is away.
The Dutch course is full.
Marathon training was hard.
Twisted my ankle, no marathon training this week.
Ate fish by mistake.
Had no vegetables left.
My desk is a mess.
Worked at Jonas's desk.
Marlene is away until Sunday.
Picked up the spare key.
Theo is ill.
Theo has no homework.
Voted today.
Finished a chapter of Middlemarch.
Left Middlemarch on the train.
Porto lost again.
Back in Porto.
Flew out of Porto.
Nexia is hiring.
Left Nexia at six.
Nexia's site is down.
Nexia won a prize.
Had nuts by accident.
Tea with Jonas.
No green tea left.
Bought green tea.
Jule called from Bremen.
Jule is in Porto this week.
Jule left for Bremen.
My brother landed in Porto.
My mother is visiting.
Mum left on Sunday.
Dad is ill.
Dad is fine again.
Kiel was rainy.
Jonas asked about the cello.
Jonas will not come on Sunday.
Jonas is not at home.
Jonas can't come.
Jonas didn't eat the cake.
Jonas never showed up.
Jonas started a new book.
Jonas got a new phone.
Jonas has a new haircut.
Jonas is now in the garden.
Jonas is now my neighbour.
Jonas bought a bike.
Jonas and I walked.
Jonas isn't well.
Jonas was promoted.
Jonas became a father.
Jonas is moving the piano.
Jonas was away.
Jonas changed the tyres.
Jonas turned off the heating.
Jonas stopped laughing.
Jonas broke his glasses.
Jonas replaced the bulb.
Jonas rejoined the call.
Priya switched the database to read-only.
Priya turned the alarm off.
Priya deleted the old branch.
Priya replaced the cable.
Priya paused the rollout.
Priya dropped the index.
Priya shut down the old server.
Tom redid the icons.
Tom is no fan of meetings.
Tom stopped sharing his screen.
Marta is now on mute.
Marta changed the agenda.
Marta is not in today.
Marta replaced the chairs.
We replaced the chairs.
We cancelled the dinner.
We turned off the heating.
We gave away the old sofa.
We sold the old sofa.
We got rid of the boxes.
We stopped at the lake.
We stopped the car.
We dropped the kids at Waldschule.
We left the kids with my mother.
We left Miso with Marlene.
We lost the match.
We lost Miso's ball.
I stopped the run early.
I stopped for coffee.
I dropped my phone.
I left my phone at Jonas's.
I left the gym early.
I quit the app.
I quit Vim by accident.
I closed the laptop.
I deleted a photo.
I cancelled the cab.
I gave Jonas my old ThinkPad charger.
I returned the library books.
I sold my old skis.
I switched seats.
I switched the lights off.
I changed trains in Halle.
I changed my shirt.
I changed the sheets.
I moved the desk.
I moved the Golf to the garage.
I moved my dentist appointment.
I finished the coffee.
I finished my tea.
I finished work at six.
I ended the call.
I skipped Dutch today.
I missed Dutch class.
I no longer hurt.
I am no longer tired.
I am not hungry.
I don't feel like running.
I don't want to go out.
I didn't sleep.
I never saw that film.
I had enough of the rain.
I am fed up with the rain.
I got over the cold.
I am done with the dishes.
I am out of milk.
I am off to bed.
I am back home.
I am back at work.
I'm back from Kiel.
I'm off on Monday.
I'm away on Tuesday.
It is over.
The match is over.
The rain stopped.
The heating is off.
The bread is gone.
The cake is gone.
The coffee is cold.
The tea is cold.
The guitar is out of tune.
The cello was loud.
The marathon is in April.
The Dutch teacher is ill.
The dentist moved my appointment.
The landlord fixed the heating.
The landlord raised the alarm.
The rent is due.
The bank is closed.
The kids went to bed.
The kids stopped fighting.
The school called.
Waldschule won the cup.
Theo finished his homework.
Theo lost a tooth.
Theo is done with his bath.
Theo stopped crying.
Theo left his bag at school.
Miso finished the food.
Miso stopped eating for a day.
Porto is far.
Nexia moved its servers.
Nexia closed the canteen.
Nexia dropped the price.
Heron moved to a new repo.
Heron got a new logo.
Heron is now in review.
Heron is blocked.
Heron stopped responding.
Postgres crashed.
Postgres is back.
We restarted Postgres.
We upgraded Postgres.
""".splitlines()
"""What each of them did one day, each in a note of its own; it changes nothing of that."""
OF_PEOPLE_IN_GERMAN = """\
Ich wohne in Wien.
Ich arbeite bei Hansa.
Ich bin Architektin.
Ich bin Diabetikerin.
Mein Geburtstag ist am 9. August.
Lena ist meine Frau.
Lena arbeitet an der Oper.
Lena wohnt in Graz.
Lena spielt Geige.
Lena hat eine Nussallergie.
Ich trinke Kaffee schwarz.
Ich spiele Geige.
Ich singe im Chor.
Chor ist mittwochs.
Wir haben einen Hund, Bella.
Mein Auto ist ein Skoda.
Meine Mutter wohnt in Linz.
Mein Vater ist Schneider.
Ich benutze Emacs.
Mein Laptop ist ein ThinkPad.
Mein Handy ist ein Pixel.
Die Miete beträgt 900 Euro.
Standup ist um 9:30.
Ich lese vor dem Schlafen.
""".splitlines()
HAPPENED_IN_GERMAN = """\
Lena hat angerufen.
Lena ist krank.
Lena ist wieder da.
Lena ist früh gegangen.
Lena hat die Wohnung geputzt.
Lena hat den Termin verschoben.
Lena hat ihre Schlüssel verloren.
Lena hat aufgehört zu lachen.
Lena hat ihr altes Rad verkauft.
Lena ist nach Hause gegangen.
Lena ist zu Hause.
Lena ist umgestiegen.
Lena hat das Licht ausgemacht.
Lena hat die Birne gewechselt.
Post aus Wien.
Wein aus Wien bestellt.
Zurück aus Wien.
Bin aus Wien zurück.
Um fünf aus Wien losgefahren.
Die Heizung ist kaputt.
Das Auto ist in der Werkstatt.
Das Auto ist kaputt.
Der Chor fiel aus.
Kein Chor diese Woche.
Kein Kaffee mehr da.
Der Kaffee ist alle.
Ich habe den Kaffee verschüttet.
Ich habe die Geige fallen lassen.
Ich habe aufgehört zu lesen.
Ich habe den Laptop zugeklappt.
Ich bin nicht mehr müde.
Ich mag heute keinen Kaffee.
Mama ist zu Besuch.
Mama ist abgereist.
Papa hat die Reifen gewechselt.
Papa ist wieder gesund.
Hansa hat die Maschinen ersetzt.
Hansa hat einen Kunden verloren.
Ein Brief von Hansa.
Bella ist weggelaufen und wieder da.
Bella frisst nicht.
Mein Handy ist leer.
Die Miete ist bezahlt.
Emacs ist abgestürzt.
Ich habe Emacs geschlossen.
Das Standup ist ausgefallen.
Kein Standup heute.
Lena ist zurück.
Lena hat abgesagt.
Lena hat das Buch beendet.
Lena hat ihr Handy verloren.
Lena hat das Spiel verloren.
Lena ist raus.
Lena ist vorbei gekommen.
Ich bin fertig.
Ich bin raus.
Mutter ist umgezogen.
Bella ist müde.
Das Handy ist wieder da.
Emacs läuft wieder.
Die Oper ist geschlossen.
""".splitlines()
