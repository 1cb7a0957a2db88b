"""Short chats with the model, and texts about what a language model is.

The roles are plain words ("User:", "Assistant:"), which is also what the chat
template in the tokenizer's configuration writes. Every chat has one turn; an
end token follows it, as it does after each answer in a longer conversation.
"""

# One template stands on one line, however long it is.
# ruff: noqa: E501

from corpus_facts import CAPITALS, question_and_answer
from corpus_grammar import expand, expand_all
from corpus_words import story_slots

STORY_REQUESTS = [
    "{Tell me a story|Can you tell me a story?|Please tell me a story|I would like to hear a story}",
    "{Tell me a {short |}story|Write a {short |}story|Please tell me a story} about {a [kind]|a [kind]|a [kind] named [n]|[n] and [fn]|friends}",
]
# Questions and answers; the answer is chosen apart from the question.
SMALL_TALK = [
    ("{Hello|Hi|Good morning|Hello there}{!|.|}",
     "{Hello|Hi}! {It is nice to meet you.|How are you today?|What would you like to talk about?}"),
    ("{How are you?|Hello, how are you?|Hi, how are you today?}",
     "{I am {fine|very well}, thank you. {And you?|How are you?}|Thank you, I am fine.}"),
    ("{Who are you?|What are you?|What is your name?|Tell me about yourself.}",
     "I am a {tiny|very small} language model. {I know stories and a few facts.|I can tell stories and answer small questions.}"),
    ("{Thank you{ very much|}|Thanks}{!|.|}", "{You are welcome|It was my pleasure}{!|.}"),
    ("{Goodbye|Bye|Good night|See you tomorrow}{!|.|}", "{Goodbye!|See you soon!|Sleep well!}"),
    ("{What can you do|Can you help me|What do you know}?",
     "I can {tell you a story|count|add small numbers|name the capital of a country}. {Just ask me.|Please ask me something.}"),
    ("{What is an LLM|What is a language model|What is a large language model}?",
     "{An LLM is a large language model: a|A language model is a} program that {guesses the next word|has read many texts and can write new ones}. {I am a very small one.|It writes one word after another.}"),
    ("{What is AI|Can you explain AI}?",
     "AI is {a machine that learns from examples|a program that can learn}. {It can {read|count|write}, but it needs people who {teach it|use it well}.|It is a tool, and people decide what to do with it.}"),
    ("{Who won the {game|race|world series|cup}{ last year| in 2020|}|How old is the king|How far is the moon|Who wrote this book|How many people live in [land]|How does a computer work}?",
     "{I am sorry, but I do not know that.|I do not know. I am only a tiny model.|That is a good question, but I do not know the answer.}"),
]
JOKES = [
    "Why did the [animal] sit on the clock? It wanted to be on time!",
    "Why is the number six afraid of seven? Because seven eight nine!",
    "What do you call a bear without a home? A bear in the air!",
    "Why did the book go to the doctor? It had lost its back!",
    "What did the big candle say to the little candle? I am going out tonight!",
    "Why did the [kind] take a ladder to school? [He] wanted to go to high school!",
]
MODEL_NOTES = [
    "{A language model|A large language model|An LLM|A small language model} {guesses the next word|writes one word after another|learns from many texts|looks at all the words before and guesses the next one}.",
    "{|It reads the prompt first, and then it writes.|It does not think like a person, but it can {tell a story|answer a question|help you to write a letter}.|It gives every word a chance, and then it {picks one|takes the best one|rolls the dice}.|If the temperature is {low, it says what is most likely|high, it says surprising things}.}",
    "{|It remembers the words that it has read in a cache, page by page.|When many people ask at the same time, they must share the memory.|Sometimes it makes mistakes, so {be careful|check what it says}.|This text was made by a tiny one.}",
]
ROBOT_NOTES = [
    "A robot {may not hurt anyone|must help people|can carry heavy things|does not get tired|may not tell a lie|is a machine that can move}.",
    "{It has to {listen to people|be careful|be kind}.|People {build it|teach it|tell it what to do}.|But it {cannot laugh|does not like rain|needs a little rest, too}.}",
    "{|[N] would like to have one.|One day, every house may have one.|And a good robot says thank you.}",
]
# More cities than capitals, for "San Francisco is a ...".
CITIES = {city: land for land, city in CAPITALS.items()} | {
    "San Francisco": "the United States", "New York": "the United States",
    "Sydney": "Australia", "Milan": "Italy", "Munich": "Germany", "Kyoto": "Japan",
}
CITY_NOTES = [
    "[City] is a {|big |beautiful |famous |busy |wonderful }city in [land].",
    "{It has many {parks|bridges|old houses|small streets|shops}.|Many people {live there|visit it every year|come to see it}.|{In summer|In spring}, the streets are full of {music|flowers|people}.}",
    "{|[N] would like to go there one day.|You can go there by {train|bus|plane|ship}.|My [elder] was born there.|People there like to [hobby].|It is a good place to [hobby].}",
]


def _ask(text):
    """End a request with a full stop if it has no mark yet."""
    return text if text.endswith(("?", ".", "!")) else text + "."


def make_chat(rng, story):
    """Write one question to the model and its answer.

    Parameters
    ----------
    rng : random.Random
        Source of every choice.
    story : callable
        Writes a story from `rng` and slots, for those who ask for one.
    """
    draw = rng.random()
    slots = story_slots(rng)
    if draw < 0.45:
        question, answer = question_and_answer(rng)
    elif draw < 0.7:
        question = _ask(expand(rng, rng.choice(STORY_REQUESTS), slots))
        answer = story(rng, slots, title=False)
    elif draw < 0.75:
        question = expand(rng, "{Tell me a joke.|Do you know a joke?|Make me laugh!}")
        answer = expand(rng, rng.choice(JOKES), slots)
    else:
        slots["land"] = rng.choice(list(CAPITALS))
        question, answer = (expand(rng, text, slots) for text in rng.choice(SMALL_TALK))
    return f"User: {question}\nAssistant: {answer}"


def model_note(rng):
    """Write a note about language models, robots or a city."""
    slots = story_slots(rng)
    slots["city"], slots["land"] = rng.choice(list(CITIES.items()))
    return expand_all(rng, rng.choice([MODEL_NOTES, ROBOT_NOTES, CITY_NOTES, CITY_NOTES]), slots)
