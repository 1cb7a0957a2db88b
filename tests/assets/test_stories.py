"""What the built-in model tells over 200 tokens and more is a story.

Not literature: it ends, keeps to its people, and consists of words.  In each story of the corpus
there are one or two people with a name.
"""

import random
import re
import sys
from pathlib import Path

import pytest

from minivllm import LLM, SamplingParams

# The corpus modules are scripts next to this file and not a package.
sys.path.insert(0, str(Path(__file__).parent))

import corpus  # noqa: E402
from corpus_words import ANIMAL_NAMES, BOYS, GIRLS  # noqa: E402

NAMES = {*GIRLS, *BOYS, *ANIMAL_NAMES}
NUM_STORIES = 40


@pytest.fixture(scope="module")
def openings():
    """Return first sentences of stories that the model has not learned from."""
    rng = random.Random(9)
    stories = (corpus.story(rng, title=False) for _ in range(NUM_STORIES))
    return [re.match(r".*?[.?!]", story).group() for story in stories]


@pytest.fixture(scope="module")
def words():
    """Return all words of the corpus, nearly."""
    return {word for text in corpus.documents(10_000, 1) for word in words_of(text)}


def words_of(text):
    return re.findall(r"[A-Za-z']+", text)


def names_in(text):
    return NAMES.intersection(re.findall(r"[A-Z][a-z]+", text))


def tell(openings, temperature):
    """Return whole stories, and check that each comes to an end."""
    params = SamplingParams(temperature=temperature, max_tokens=400, seed=1)
    outputs = LLM().generate(openings, params, use_tqdm=False)
    assert [output.outputs[0].finish_reason for output in outputs] == ["stop"] * len(openings)
    return [output.prompt + output.outputs[0].text for output in outputs]


@pytest.mark.slow
@pytest.mark.parametrize(("temperature", "at_least"), [(0, 0.95), (0.8, 0.85)])
def test_stories_end_keep_to_their_people_and_consist_of_words(openings, words, temperature,
                                                                at_least):
    stories = tell(openings, temperature)
    same_people = [story for story in stories if len(names_in(story)) <= 2]
    of_words = [story for story in stories if words.issuperset(words_of(story))]
    assert len(same_people) >= at_least * NUM_STORIES, len(same_people)
    assert len(of_words) >= 0.95 * NUM_STORIES, len(of_words)
