"""Short notes about everyday things: animals, weather, work, food, journeys.

They widen the small world beyond stories, so that the model has something to
say after many simple beginnings ("The cat", "I like", "In winter").
"""

# One template stands on one line, however long it is.
# ruff: noqa: E501

from corpus_facts import EATS, HOMES, SOUNDS, YOUNG
from corpus_facts import JOBS as JOB_DEEDS
from corpus_grammar import capital, expand, expand_all
from corpus_words import FOODS, HOBBIES, PLACES, story_slots

SEASON_NOTES = {
    "spring": ["the first flowers open", "the birds build their nests", "the snow melts"],
    "summer": ["the days are long and warm", "we swim in the lake", "we eat ice cream"],
    "autumn": ["the leaves turn red and yellow", "the wind is strong", "we find many nuts"],
    "winter": ["the nights are long", "we sit by the fire", "snow falls on the roofs"],
}
SEASON = [
    "In [season], [note]{.| and [note2].}",
    "{|My [elder] says that {[season] is the best time of the year|every season has its own beauty}.|The children {play outside until the evening|like to play in the [place]}.|The animals {know what to do|get ready}.}",
    "{|I like [season] {very much|best}.|I wear my [colour] {coat|hat|shoes}.|{Sometimes|Often} we {drink hot tea|go for a walk|sing together}.}",
]
CAT_AND_DOG = [
    "{The|A|My|Our} {little|old|lazy|young|big|funny} {cat|dog} {sat|slept|lay} {on the mat|by the window|in the sun|under the table|in front of the door}.",
    "{It was {warm|quiet|a sunny day} {there|and nobody came}.|It {dreamed of|waited for} {a big fish|a long walk|[n]|a bone}.}",
    "{Then a {mouse|bird|fly|butterfly} came {along|in|by}, and it {opened one eye|jumped up|did not move}.|Suddenly, there was a sound, and it {ran away|jumped up|hid under the bed}.}",
    "{|\"{Good morning|Hello|Come here}, little friend,\" said {[n]|[n] softly}.|After that, it {went back to sleep|wanted something to eat|was very tired}.|And so the {morning|day|afternoon} went by.}",
]
WEATHER = [
    "{Today|This morning} it is {sunny|cloudy|windy|cold|warm|very hot}{ and the sky is clear| outside|}. {Yesterday, it {rained|snowed} all day|Tomorrow, it will {rain|snow|be warm}|I hope that it will not rain}.",
    "{I will {take my [colour] umbrella|put on my coat|go to the [place]|stay at home and read}.|The {birds|children} {sing|are happy}.|It is a good day to {[hobby]|go for a walk|stay in bed}.}",
    "{|\"{Do not forget your hat|Come in and have some tea|Let us go outside},\" says my [elder].}",
]
WORK = [
    "A [job] is a person who [deed]. {It is {hard|good|important} work|Every morning, the [job] gets up early|Many people need a [job]}.",
    "{[N] wants to {be|become} a [job]{ one day| when [he] grows up|}.|The [elder] of [n] is a [job].|Yesterday, a [job] came to our school.}",
    "{|\"{I love my work|I learn something every day|It makes people happy},\" says the [job].|You need {patience|strong hands|a good head|a kind heart} for it.}",
]
DISH = "{a pancake|a cake|bread|soup|tea|a fruit salad}"
KITCHEN = [
    "{{To make|If you want to make} [dish], first|This is how you make [dish]: first} {wash your hands|take a big bowl|take some water}.",
    "Then {mix {flour, milk and eggs|butter and sugar}|cut the {apples|carrots} into small pieces|put everything together|wait until the water is hot}.",
    "{Cook it for {ten|five|twenty} minutes|Put it into the oven|Let it rest for a while|Do not forget the salt}. {At the end|Now}, {share it with a friend|eat it while it is warm|let it cool and enjoy}.",
]
PREFERENCES = [
    "{I like|I love|We like|My favourite thing is} to [hobby]{.| in the [place].| with my [elder].| on [weather] days.}",
    "{But I do not like {to get up early|to be late|loud sounds|cold soup}.|It makes me {happy|calm|strong}.|Sometimes my friend [fn] {comes along|helps me|watches me}.}",
    "{|Yesterday, I {did it for an hour|could not do it, because it rained|did it with [n]}.|{What|And what} do you like to do?|I could do it all day.}",
]
JOURNEY = [
    "{Last week|Last summer|One day|On [day]}, {we went|my family went|[n] and [fn] went} to {the sea|the mountains|the zoo|a big city|an island|the [place]} by {train|bus|boat|car|bike}.",
    "{The way was long, but {we sang songs|there was much to see}.|On the way, {there were green fields and small houses|a cow looked at us|we ate a [food]}.}",
    "There we saw {a lion and a bear|high waves and white birds|tall houses and many people|an old castle|a ship with [colour] flags}. {It was {wonderful|so big|loud and full of life}|Nobody wanted to go home|We looked and looked}.",
    "{|In the evening, {everyone was tired and happy|we ate soup and went to bed}.|I will never forget that day.|Next time, we want to stay longer.}",
]
TALK = [
    "\"{Good morning|Good day|Hello},\" said the {baker|farmer|teacher|old man|woman}. {\"How are you today?\" \"I am fine, thank you,\"|\"What can I do for you?\" \"I would like a [food], please,\"|\"Where are you going?\" \"I am going to the [place],\"|\"What are you looking for?\" \"I am looking for my [noun],\"} {said|answered} [n].",
    "\"{That is good|Then have a nice day|It is a good day for that|I can help you},\" said the {other one|friendly voice}. {[N] smiled and went on [his] way|They talked for a while|And [n] said thank you}.",
]
THOUGHTS = [
    "{Friendship|Love|Happiness|Music|A good book|A garden|Time|A smile|Learning|Rain|A home} is {a gift|like {the sun|a small light|a warm coat}|more than {gold|a word}|something that you can share|good for the heart|a little wonder}.",
    "{|You cannot buy it{.| in a shop.}|It {grows|gets better} when you share it.|It does not cost much.|Everybody needs it{.| sometimes.}}",
    "{|My [elder] told me that.|That is what I {think|believe}.|What do you think?}",
]
_TEMPLATES = [
    CAT_AND_DOG, WEATHER, KITCHEN, PREFERENCES, PREFERENCES, JOURNEY, TALK, THOUGHTS,
]


def animal_note(rng):
    """Write what this world knows about one animal."""
    animal = rng.choice(sorted(set(SOUNDS) & set(YOUNG)))
    plural = animal + "s"
    sentences = [
        f"The {animal} says {SOUNDS[animal]}.", f"A baby {animal} is called a {YOUNG[animal]}."]
    if plural in EATS:
        sentences.append(f"{capital(plural)} like to eat {EATS[plural]}.")
    if animal in HOMES:
        sentences.append(f"A {animal} lives in a {HOMES[animal]}.")
    rng.shuffle(sentences)
    opening = expand(rng, rng.choice([
        "The [animal] is an animal.", "This is {a|my} [animal].", "I {saw|met} a [animal] today.",
        "Look, there is a [animal]!", "Do you like {[animal]s|the [animal]}?"]), {"animal": animal})
    # "sheep" stays the same for many of them.
    opening = opening.replace("sheeps", "sheep")
    return " ".join([opening] + sentences[: rng.randint(1, len(sentences))])


def note(rng):
    """Write one short note of a random sort."""
    if rng.random() < 0.15:
        return animal_note(rng)
    slots = story_slots(rng)
    season = rng.choice(list(SEASON_NOTES))
    first, second = rng.sample(SEASON_NOTES[season], 2)
    deed, job = rng.choice(list(JOB_DEEDS.items()))
    slots.update(
        season=season, note=first, note2=second, deed=deed, job=job, dish=DISH,
        hobby=rng.choice(HOBBIES), food=rng.choice(FOODS), place=rng.choice(PLACES),
    )
    templates = rng.choice(_TEMPLATES + [SEASON, SEASON, WORK])
    return expand_all(rng, templates, slots)
