"""Exercises: the real engine with one hole in it, and a check that says what is wrong.

An exercise is a subclass of a real class with methods missing.  The engine takes classes
(``LLM(block_manager=MyManager)``), so nothing is patched: the check runs the real engine with
the learner's class and compares it with the real one, step by step.

Each has a folder here, ``NN_name``, with a text (``README.md``), the class to complete
(``exercise.py``), an answer (``solution.py``) and the check (``check.py``).  vLLM has nothing
like it.
"""

from minivllm.exercises.runner import check

__all__ = ["check"]
