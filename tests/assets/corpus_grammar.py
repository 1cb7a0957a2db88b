"""A small template language for writing many different texts with few lines.

A template is plain text with two kinds of marks:

* ``{a|b|c}`` is replaced by one of its alternatives (they may nest, and an
  empty alternative makes a part optional);
* ``[slot]`` is replaced by the value of a slot, and ``[Slot]`` by the same
  value with a capital first letter.

All randomness comes from the ``random.Random`` that the caller passes in, so
that one seed always gives one text.
"""

import re

_CHOICE = re.compile(r"\{([^{}]*)\}")
_SLOT = re.compile(r"\[(\w+)\]")
_ARTICLE = re.compile(r"\b([Aa]) (?=[aeioAEIO]|u[nmp][^i]|8\b|11\b|18\b)")
_SPACES = re.compile(r" {2,}")


def capital(text):
    """Return `text` with its first letter in upper case."""
    return text[:1].upper() + text[1:]


def expand(rng, template, slots=None):
    """Write out one random reading of a template.

    Parameters
    ----------
    rng : random.Random
        Source of every choice.
    template : str
        Text with ``{a|b}`` choices and ``[slot]`` marks.
    slots : dict of str, optional
        Values of the slots. Values may hold choices themselves.

    Returns
    -------
    str
        The finished text, with "a" turned into "an" where it is needed.
    """
    slots = slots or {}

    def fill(match):
        name = match.group(1)
        if name in slots:
            return slots[name]
        return capital(slots[name[:1].lower() + name[1:]])

    # Slots first, so that a value may bring its own choices; innermost
    # choices next, so that outer alternatives can hold inner ones.
    text = _SLOT.sub(fill, template)
    while "{" in text:
        text = _CHOICE.sub(lambda m: rng.choice(m.group(1).split("|")), text)
    text = _SPACES.sub(" ", text).strip()
    return _ARTICLE.sub(r"\1n ", text)


def expand_all(rng, templates, slots=None):
    """Write out several templates as one paragraph, skipping empty ones."""
    parts = (expand(rng, template, slots) for template in templates)
    return " ".join(part for part in parts if part)


def ranked_choice(rng, items, offset=6.0):
    """Choose an item, the earlier ones more often than the later ones.

    Real words are not equally frequent. A gently falling distribution gives
    the model something to show under temperature, top-k and top-p sampling.
    """
    weights = [1.0 / (rank + offset) for rank in range(len(items))]
    return rng.choices(items, weights)[0]
