"""Generate the text that the built-in tiny model learns from.

Everything here is made from our own templates and word lists; no outside text
is used. The text is a function of the seed alone, so anyone can make it again:

    python tests/assets/corpus.py --sample 5     # look at a few documents
    python tests/assets/corpus.py --facts        # write facts.json again
"""

# One template stands on one line, however long it is.
# ruff: noqa: E501

import argparse
import json
import pathlib
import random

import corpus_plots
import corpus_plots2
import corpus_plots3
import corpus_plots4
from corpus_chat import make_chat, model_note
from corpus_facts import fact_checks, fact_document, list_document
from corpus_games import memory_game
from corpus_grammar import expand, expand_all
from corpus_notes import note
from corpus_talk import introduction, poem, short_text
from corpus_words import FRUITS, NUMBER_WORDS, story_slots

HERE = pathlib.Path(__file__).parent
END = "<|end|>"
PLOTS = {
    **corpus_plots.PLOTS, **corpus_plots2.PLOTS, **corpus_plots3.PLOTS, **corpus_plots4.PLOTS,
}

OPENINGS = [
    "{Once upon a time|Once upon a time|Once upon a time|A long time ago|Long ago|Once}, there was a [trait] [kind] {named|called} [n]. {[He] lived [home]|[He] loved to [hobby]|[N] and [his] friend [fn] lived [home]}.",
    "Once upon a time, {in a small village|in a green forest|in a town by the sea|on a little farm|far away}, there lived a [trait] [kind] {named|called} [n]. {[He] lived there with [his] [elder]|[He] loved to [hobby]|[His] best friend was called [fn]}.",
    "[N] was a [trait] [kind] who {lived [home]|loved to [hobby]}. {[His] best friend was {called|named} [fn]|Every day, [he] went to the [place]|Everyone in the village knew [him]}.",
    "There was {once|} a [trait] [kind] {named|called} [n]. {[N] liked to [hobby]|[N] lived [home] with [his] [elder]}.",
    "{Do you know [n], the [trait] [kind]|Have you heard of [n], the [trait] [kind]}? {[He] lives [home]|[He] loves to [hobby]}. Let me tell you {what happened one day|a story about [him]}.",
    "In a {small|quiet|little} {house|town|village}, there lived a [kind] {named|called} [n]. [He] was very [trait]{, and everyone liked [him]|, and [he] loved to [hobby]|}.",
]
ENDINGS = [
    "", "", "", "The end.", "The end.", "And they lived happily ever after.",
    "And so the day ended with a smile.", "What a day it was!",
    "[N] and [fn] still talk about it today.", "That night, everyone slept very well.",
    "And if you listen well, you can still hear them laugh.",
]
TITLES = {
    "lost": "The Lost [Noun]", "sharing": "[N] Shares", "dark": "[N] and the Dark Night",
    "hurt": "The Little [Animal]", "broken": "[N] Tells the Truth", "growing": "The Little Seed",
    "building": "[N] and [fn] Build Together", "rain": "A Rainy Day",
    "birthday": "The Birthday of [n]", "baking": "[N] Helps in the Kitchen",
    "race": "The Big Race", "learning": "[N] Learns Something New", "way": "[N] Finds the Way",
    "new": "A New Friend", "greedy": "Too Many [Treat]", "wish": "The Star and [n]",
    "snow": "The Snowman", "treasure": "The Treasure Map", "robot": "[N] and the Robot",
    "quarrel": "[N] and [fn] Make Up", "kite": "The Kite in the Tree",
    "egg": "The Strange Egg", "sleep": "[N] Cannot Sleep", "sick": "Soup for [fn]",
    "bridge": "Two on a Bridge", "market": "[N] Goes to the Market",
    "moon": "The Moon in the Pond", "singer": "[N] Sings", "neighbour": "The Old Man Next Door",
    "room": "The Messy Room", "first": "The First Day of School",
    "dragon": "The Small Dragon", "picnic": "A Picnic", "echo": "The Voice in the Mountains",
}


def story(rng, slots=None, title=True):
    """Write one story: an opening, one plot and an ending.

    Parameters
    ----------
    rng : random.Random
        Source of every choice.
    slots : dict of str, optional
        People and things; invented when not given.
    title : bool, optional
        Whether the story may begin with a title line.

    Returns
    -------
    str
        A story of about 100 to 200 words.
    """
    slots = dict(slots or story_slots(rng))
    first, second = rng.randint(2, 6), rng.randint(1, 6)
    slots.update(
        sum_a=NUMBER_WORDS[first], sum_b=NUMBER_WORDS[second],
        sum_c=NUMBER_WORDS[first + second], fruit=rng.choice(FRUITS),
        treat=rng.choice(["cookies", "muffins", "pancakes"]),
        ask=rng.choice(["Who are you", "Where are you", "What is your name"]),
        rude=rng.choice(["You are silly", "Go away", "I do not like you"]),
        nice=rng.choice(["I like you", "You are my friend", "You have a beautiful voice"]),
    )
    name = rng.choice(list(PLOTS))
    opening = expand(rng, rng.choice(OPENINGS), slots)
    # Some writers make paragraphs; three sentences then stand together.
    gap = "\n\n" if rng.random() < 0.2 else " "
    plot = PLOTS[name]
    half = len(plot) // 2
    ending = rng.choice(ENDINGS)
    parts = [opening, expand_all(rng, plot[:half], slots),
             expand_all(rng, plot[half:] + [ending], slots)]
    text = gap.join(parts)
    if title and rng.random() < 0.15:
        heading = TITLES[name].replace("[Noun]", slots["noun"].title())
        heading = heading.replace("[Animal]", slots["animal"].title())
        text = expand(rng, heading, slots) + "\n\n" + text
    return text


def chat(rng):
    """Write one question to the model and its answer."""
    return make_chat(rng, story)


# Shares of the documents, not of the text: stories are much the longest.
MIXTURE = [
    (story, 32), (fact_document, 40), (introduction, 6), (short_text, 7), (note, 6), (chat, 5),
    (model_note, 2), (memory_game, 8), (poem, 1), (list_document, 1),
]


def document(rng):
    """Write one random document of the corpus, without its end token."""
    kinds = [kind for kind, _ in MIXTURE]
    return rng.choices(kinds, [weight for _, weight in MIXTURE])[0](rng)


def documents(count, seed):
    """Yield `count` documents; the same seed always gives the same ones."""
    rng = random.Random(seed)
    for _ in range(count):
        yield document(rng)


def write_facts(path=HERE / "facts.json"):
    """Write the prompts with one right answer, for the tests."""
    with open(path, "w", encoding="utf-8") as file:
        lines = (json.dumps(check, ensure_ascii=False) for check in fact_checks())
        file.write("[\n" + ",\n".join(lines) + "\n]\n")


def main():
    """Show a sample of the corpus or write the list of facts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sample", type=int, default=0, help="documents to print")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--facts", action="store_true", help="write facts.json")
    args = parser.parse_args()
    if args.facts:
        write_facts()
    for text in documents(args.sample, args.seed):
        print(text + END + "\n")


if __name__ == "__main__":
    main()
