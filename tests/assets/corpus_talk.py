"""Short texts with freedom of choice: introductions, musings, presidents.

These are the texts behind the prompts that introductions to vLLM use. Here
the next word is meant to be uncertain, so that sampling has something to do.
"""

# One template stands on one line, however long it is.
# ruff: noqa: E501

from corpus_grammar import expand, expand_all, ranked_choice
from corpus_words import (
    ANIMAL_NAMES,
    BOYS,
    ELDERS,
    FOODS,
    GIRLS,
    HOBBIES,
    HOMES,
    JOBS,
    PLACES,
    story_slots,
)

# Girls and boys in turn, so that both are among the most frequent names.
_NAMES = [name for pair in zip(GIRLS, BOYS, strict=True) for name in pair] + ANIMAL_NAMES[:6]

INTRODUCTION = [
    "{Hello, my name is [n]|Hello, my name is [n]|Hello, my name is [n]|Hi, my name is [n]|My name is [n]|Hello! My name is [n]|Hello, I am [n]}{.| and|, and}",
    "{I am [age] years old|I am [age] years old|I am [job]|I am [job]|I live [home]|I like to [hobby]|I am from a small village|I am new here|I am happy to meet you}.",
    "{|I live [home] with my {[elder]|mum and my dad|family|two cats|little brother|big sister}.|Every day, I go to the [place].|Every morning, I {walk|run|go} to the [place].}",
    "{|I like to [hobby]{ and to [hobby2]|, and I want to learn how to [hobby2]|}.|My favourite colour is [colour].|I love {the smell of rain|warm bread|old books|the sound of the sea}.|My favourite food is {soup|bread|cake|a good [food]}.}",
    "{|I have a {little|big|funny|lazy} [pet] {named|called} [pname]. {It likes to sleep in the sun|It follows me everywhere|It is my best friend|We play together every day}.|My best friend is {named|called} [fn]. {We [hobby2] together|We go to school together|We laugh a lot}.}",
    "{|When I grow up, I want to be [job2].|One day, I want to see the {sea|mountains|whole world}.|On [day], I always visit my {grandma|grandpa|aunt|uncle}.}",
    "{||What is your name?|And who are you?|Nice to meet you!|It is nice to meet you.|What do you like to do?}",
]

PRESIDENT = [
    "The president of the United States is {a person who {leads the country|works for all the people|has to make hard decisions|must listen to many people}|chosen by the people {every four years|in an election}|the {leader|head} of {the country|the government}|elected {by the people|every four years}|at work in {a big white house|Washington}|not a king, but a person who is chosen by the people|an important person{| in the country}|someone who {speaks for the country|makes many decisions|has a lot of work}|going to {give a speech|visit a school|speak to the people|meet the farmers} {today|tomorrow|on [day]}|here to {help|serve} the people}.",
    "{|The president lives in {a big white house|the White House} {with many rooms|with a big garden|in Washington}.|{He or she|The president} {has a lot of work|reads many letters every day|works with many other people|has to keep the laws}.|The {work|job} of the president is {very hard|not easy|to help the people}.}",
    "{|After four years, the people {choose again|can vote again}.|The people can vote for {the one they trust|the one they like best}.|A good president {listens to everyone|tells the truth|thinks of the children, too|is fair to everyone}.|Everyone in the country can {write a letter to the president|say what they think}.}",
    "{||\"One day, I want to be president,\" said [n].|Some children {want|would like} to be president when they grow up.|But even the president has to {brush his or her teeth|sleep at night|say please and thank you}.}",
]

OTHER_PRESIDENT = [
    "The president of {the club|our class|the company|the school|the village band} is {a kind woman|an old man|a friendly person|very busy today|[n]|someone who likes to [hobby]}.",
    "{The president said that {everyone can come on [day]|we need a new door|the work is almost done}.|Everybody likes {to listen to the president|the president}.|We chose {the president|our president} last year.}",
]

FUTURE = [
    "The future of {AI|AI|AI|AI|AI|AI|school|the city|food|travel|our village|books|music} is {bright|open|not written yet|in our hands|hard to guess|a big question|full of {hope|questions|surprises}|something that we {make together|can choose}|like {a garden: it needs care|an empty page|a long road|a door that is half open}|exciting, but also {a little scary|full of questions}|what we make of it|closer than we think|being built today|a story that nobody has read yet|up to us}.",
    "{|Nobody knows {what will happen|what tomorrow brings|how it will end}, but {we can learn|we can make a plan|we can help to make it good}.|Some people are {afraid|worried}, and some people are {full of hope|very happy about it}.|Many people {ask questions about it|think about it every day|work on it}.|We should {be careful|ask many questions|think first} and {be kind|help each other|never stop learning}.}",
    "{|A machine can {count fast|read many books|write a letter|answer a question}, but {a friend can hold your hand|it cannot taste a cake|it must learn what is right|people must decide what is good}.|Maybe one day, a {robot|computer|machine} will {help the doctor|water the garden|tell us a story|carry our bags}.|New ideas need {time|care|patience} and {good people|open eyes|a clear head}.|Children of today will {build|make|write} the world of tomorrow.}",
    "{||The best way to {know|see} the future is to {make it|build it}.|What do you think?|Let us make it a good one.|And that is why we {learn|go to school|talk about it} today.}",
]

LIFE = [
    "{The life|Life|Life|The life} is {good|short, so be kind|beautiful|like {a river|a long walk|a box of colours|a song|a book with many pages}|full of {surprises|small wonders|ups and downs}|a gift|better with friends|what you make of it|not always easy|a journey, and {every day is a step|nobody walks it alone}|sometimes hard and sometimes sweet|made of small moments}.",
    "{|Some days are {sunny|easy}, and some days are {full of rain|hard}.|Every day {brings something new|is a new page|you can learn something}.|It is good to {laugh|rest|sing|share} and to {help others|say thank you|look at the sky}.|If you {fall down|make a mistake}, {get up again|try once more|you can learn from it}.}",
    "{|A {warm bed|good friend|hot soup|kind word} can make {a bad day better|everything better}.|We do not need much: {a home, some bread and a friend|a little sun and someone to talk to}.|You cannot {stop the rain|change the wind}, but you can {dance in it|open an umbrella|build a kite}.}",
    "{||So enjoy {every day|the small things|each moment}.|And tomorrow is a new day.|That is what my {grandma|grandpa} always says.}",
]

LETTER = [
    "Dear [fn],\n{how are you|thank you for your letter|I hope that you are well}? {I am fine|I am well, but I miss you|Here, everything is fine}.",
    "Yesterday, I {went to the [place] with my [elder]|found a [thing] [hiding]|played at the [place]}. {It was [weather], and we ate a [food]|It was so much fun|I thought of you the whole time}.",
    "{My little [animal] is {well|growing fast}, and it {sleeps on my bed|eats a lot|likes to run around}.|At school, we {learned a new song|counted to one hundred|painted the sea}.|Now I can [hobby] much better than before.}",
    "{Please write to me soon.|Will you come and visit me?|When will we meet again?|I hope to see you soon!}\n{Your friend|Love|Many hugs from}, [n]",
]

DIARY = [
    "{Dear diary, today|Today|[day]. Today} was a {good|long|strange|wonderful|quiet} day. {I got up early|I woke up late|It was [weather] outside}.",
    "{First,|In the morning,} I {went to the [place]|helped my [elder] in the garden|played with my [noun]}. {There I met [fn]|Then [fn] came to visit me}. We {looked for [fruit]|talked about everything|tried to [hobby]}.",
    "{Then it began to rain, but we did not mind|Suddenly, we saw a little [animal] [hiding]|At noon, we ate a [food] and had a rest}. {[Fn] told me a secret, but I cannot write it here|[Fn] laughed so loud that everyone looked at us|We had a small fight, but then we made up}.",
    "{Now I am tired|Now I lie in bed|It is late now}. {Tomorrow, I want to [hobby]|I hope that tomorrow is just as good|I wonder what tomorrow will bring}. Good night!",
]

# Both lines of a rhyme stand in one alternative, so that they stay together.
POEM = [
    "{The sun is up, the sky is blue,\nI have a song to sing to you|The birds all sing, the day is new,\nand I am here to play with you|The morning comes, the grass is wet,\nthe little bird is not up yet}.",
    "{A little [animal] came to me\nand sat down in an apple tree|A tiny boat is on the sea\nand it is coming home to me|A big old owl sits in a tree,\nas wise and quiet as can be}.",
    "{We ran and ran the whole day long\nand in the evening sang a song|We danced around and clapped our hands\nand dreamed about some far off lands|We walked through rain, we walked through sun,\nand every step was full of fun}.",
    "{|The [colour] [noun] is all I need,\na quiet place, a book to read.\n|My friend is here, my friend is kind,\nthe best of friends that you can find.\n}{The moon is high, the day is done,\ngood night, good night to everyone|Now close your eyes, the stars are bright,\nI wish you all a good, good night|Good night, my friend, sleep well, sleep tight,\nand dream until the morning light}.",
]


def _talk_slots(rng):
    """Return story slots plus the extras that introductions need."""
    slots = story_slots(rng)
    name = ranked_choice(rng, _NAMES)
    slots.update(
        n=name, fn=ranked_choice(rng, [item for item in GIRLS + BOYS if item != name]),
        age=rng.choice("four five six seven eight nine ten".split()),
        job=ranked_choice(rng, JOBS), job2=rng.choice(JOBS), hobby2=rng.choice(HOBBIES),
        pet=rng.choice("cat dog rabbit bird mouse turtle".split()),
        pname=rng.choice(ANIMAL_NAMES), food=rng.choice(FOODS), place=rng.choice(PLACES),
        home=rng.choice(HOMES), elder=rng.choice(list(ELDERS)),
        fruit=rng.choice("stones shells flowers nuts apples".split()),
    )
    return slots


def introduction(rng):
    """Write "Hello, my name is ..." and a few sentences about oneself."""
    slots = _talk_slots(rng)
    opening = expand(rng, INTRODUCTION[0], slots)
    rest = [expand(rng, template, slots) for template in INTRODUCTION[1:]]
    # Nobody says "I live ..." twice.
    if rest[0].startswith("I live") and rest[1].startswith("I live"):
        rest[1] = ""
    return " ".join([opening] + [part for part in rest if part])


_SHORT_TEXTS = [
    (PRESIDENT, 5), (OTHER_PRESIDENT, 1), (FUTURE, 5), (LIFE, 4), (LETTER, 2), (DIARY, 3),
]


def short_text(rng):
    """Write a musing, a note about a president, a letter or a diary page."""
    templates = rng.choices(
        [item for item, _ in _SHORT_TEXTS], [weight for _, weight in _SHORT_TEXTS])[0]
    return expand_all(rng, templates, _talk_slots(rng))


def poem(rng):
    """Write a poem of a few rhymed pairs of lines."""
    slots = _talk_slots(rng)
    return "\n".join(expand(rng, template, slots).strip() for template in POEM)
