"""Stepping through an engine in a REPL: forwards, back, and until something happens.

>>> s = Stepper(); s.step()  # doctest: +SKIP
step 0  prefill r0 r1 | r2 waits: token budget, needs 3, has 2

The engine only ever runs forwards; `Stepper.back` moves the view over what has been recorded.
"""

import os
from collections.abc import Callable, Iterator
from typing import Any

from rich.text import Text

from minivllm.engine.llm_engine import LLMEngine
from minivllm.inputs import PromptInputs
from minivllm.logger import without_warnings
from minivllm.sampling_params import SamplingParams
from minivllm.tracing.record import Recorder
from minivllm.tracing.recording import Trace
from minivllm.tracing.source import prompt_inputs, sampling_params, start
from minivllm.viz.pen import DIM, Pen, span
from minivllm.viz.picture import Picture
from minivllm.viz.view import View

EVENTS: dict[str, Callable[[View], bool]] = {
    "preempt": lambda view: bool(view.preempted),
    "swap": lambda view: bool(view.blocks_to_swap_in or view.blocks_to_swap_out),
    "copy": lambda view: bool(view.blocks_to_copy),
    "finish": lambda view: bool(view.finished),
}
KEY = ('step() back() until("preempt"|"swap"|"copy"|"finish") run()  why("r2") table("r0") '
       'queues() blocks() diff() timeline() memory()  s[k]  add(prompt) abort("r0") save("t.json")')
# Of a longer walk only the last lines are shown.
_MAX_LINES = 12


class Stepper:
    """An engine to walk through, and the record of the walk.

    Parameters
    ----------
    prompts_or_workload : optional
        Prompts as text, run by a real model; prompts as lists of token ids, run by the stand-in
        model unless `model` is given; a workload (dict, or path of a ``.json`` file).  None: the
        classic three requests.  Each ends after 16 tokens; `add` takes sampling parameters.
    **engine_args
        As for `LLM`; ``num_gpu_blocks`` and ``num_cpu_blocks`` are short for the overrides.
        Defaults are those of `LLM`; of the stand-in model ``block_size=4``, 64 blocks in each
        pool, and 256 for ``max_model_len`` and ``max_num_batched_tokens``.  Its tokens are 0 to
        96.

    Attributes
    ----------
    trace : Trace
        Every step so far; ``trace.svg(path, animate=True)`` plays them.
    engine : LLMEngine or None
        None if a trace file is walked through.
    """

    def __init__(self, prompts_or_workload: Any = None, *misplaced: Any,
                 **engine_args: Any) -> None:
        if misplaced:
            raise TypeError("Stepper takes prompts or a workload, and engine arguments by name; "
                            "sampling parameters go to s.add(prompt, n=2, temperature=1.0).")
        with without_warnings():
            source = start(prompts_or_workload, engine_args)
        recorder = Recorder(source.engine)
        source.engine.observers.append(recorder)
        self.engine: LLMEngine | None = source.engine
        self.trace = recorder.trace
        self._run, self._arrivals = source.run, source.arrivals
        self._steps = self._run()
        self._at = -1

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> "Stepper":
        """Walk through a trace file that `save`, or ``--trace``, has written."""
        stepper = cls.__new__(cls)
        stepper.engine, stepper._arrivals = None, []
        stepper.trace = Trace.load(path)
        stepper._at = min(0, len(stepper.trace) - 1)
        return stepper

    @property
    def view(self) -> View:
        """The snapshot that is looked at."""
        if self._at < 0:
            raise ValueError("no step has been made yet; s.step() makes step 0.")
        return self.trace[self._at]

    def __getitem__(self, step: int) -> View:
        """Return the snapshot after step `step`; -1 is the newest one."""
        return self.trace[self._index(step)]

    def _index(self, step: int) -> int:
        """Return where step `step` is in the record: an idle engine leaves numbers out."""
        if step < 0:
            return len(self.trace) + step
        for index, recorded in enumerate(self.trace.steps[:len(self.trace)]):
            if recorded["step"] == step:
                return index
        more = "" if self.engine is None else f" s.go({step}) runs on to it."
        raise IndexError(f"step {step} has not been recorded; {len(self.trace)} steps have.{more}")

    def __len__(self) -> int:
        return len(self.trace)

    def step(self, n: int = 1) -> Picture:
        """Go `n` steps forward: through the record, then on with the engine."""
        start = self._at
        while self._at < start + n and self._forward():
            pass
        return self._walked(start, "" if self._at == start + n else self._end())

    def until(self, event: str | Callable[[View], bool]) -> Picture:
        """Go forward until a step in which something happens, or to the end.

        Parameters
        ----------
        event : str or callable
            ``"preempt"``, ``"swap"``, ``"copy"``, ``"finish"``; or a function of a snapshot.
        """
        if not callable(event) and event not in EVENTS:
            raise ValueError(f"until knows {', '.join(EVENTS)}, or a function; got {event!r}.")
        happened = event if callable(event) else EVENTS[event]
        start = self._at
        while self._forward():
            if happened(self.view):
                return self._walked(start)
        what = "such step" if callable(event) else repr(event)
        return self._walked(start, f"no {what} happened; {self._end()}")

    def run(self) -> Picture:
        """Go forward to the end."""
        start = self._at
        while self._forward():
            pass
        return self._walked(start, self._end())

    def back(self, n: int = 1) -> Picture:
        """Look at an earlier step; the engine stays where it is."""
        self._at = max(self._at - n, min(0, len(self.trace) - 1))
        return self._walked(self._at - 1)

    def go(self, step: int) -> Picture:
        """Look at step `step`, running on if it has not been made yet."""
        self._at = len(self.trace) - 1
        while (not len(self.trace) or self.trace.steps[self._at]["step"] < step) \
                and self._forward():
            pass
        self._at = self._index(step)
        return self._walked(self._at - 1)

    def run_to_now(self) -> Picture:
        """Look at the newest step again."""
        self._at = len(self.trace) - 1
        return self._walked(self._at - 1)

    def _forward(self) -> bool:
        """Go one step forward; False at the end."""
        if self._at == len(self.trace) - 1 and not self._advance():
            return False
        self._at += 1
        return True

    def _advance(self) -> bool:
        """Let the engine make a step; False if it has nothing to do."""
        if self.engine is None:
            return False
        made = len(self.trace)
        with without_warnings():
            # A walk that has come to its end begins anew: requests may have been added.
            for steps in (self._steps, self._run()):
                self._steps = steps
                if next(steps, None) is not None:
                    return len(self.trace) > made
        return False

    def _end(self) -> str:
        if self.engine is None:
            return "the record ends here"
        if not len(self):
            return "there are no requests: s.add(prompt) adds one"
        return "the end: every request is finished"

    def _walked(self, start: int, note: str = "") -> Picture:
        """Return the lines of the steps after `start` up to the one that is looked at."""
        if self._at < 0:
            raise ValueError(f"there is no step to look at: {note or 's.step() makes step 0'}.")
        views = self.trace[start + 1:self._at + 1]
        shown = views[-_MAX_LINES:]

        def draw(pen: Pen) -> Iterator[Text]:
            if len(shown) < len(views):
                yield span(f"{pen.glyphs.more} {len(views) - len(shown)} steps before", DIM)
            for view in shown:
                yield from view.line().draw(pen)
            if note:
                yield span(note, DIM)

        data = {"lines": [view.line().data for view in views], "note": note}
        return Picture("steps", data, draw)

    def add(self, prompt: PromptInputs | list[int], params: SamplingParams | None = None,
            **sampling: Any) -> str:
        """Add a request (text, or token ids) before the next step, and return its name.

        Sampling parameters are `params`, or those of `minivllm.SamplingParams` by name, greedy by
        default.
        """
        engine = self._engine_now()
        if params is not None and sampling:
            raise TypeError(f"give params, or {next(iter(sampling))} and others by name, not both.")
        number = max(engine.request_counter.counter, len(self._arrivals))
        name = f"r{number}"
        engine.add_request(name, prompt_inputs(engine, prompt),
                           params or sampling_params(engine, sampling), arrival_time=float(number))
        self._arrivals.append(name)
        return name

    def abort(self, request_id: str) -> None:
        """Abort a request, whatever it is doing."""
        self._engine_now().abort_request(request_id)

    def _engine_now(self) -> LLMEngine:
        if self.engine is None:
            raise ValueError("this is the record of a run: there is no engine to change.")
        if self._at < len(self.trace) - 1:
            raise ValueError(f"you are looking at step {self.view.step}, but the engine is at step "
                             f"{self.trace[-1].step}: s.run_to_now() first.")
        return self.engine

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write all steps so far to a trace file; `Stepper.load` and ``minivllm show`` read it."""
        self.trace.save(path)

    def queues(self) -> Picture:
        """Draw who waits, runs, and is swapped out."""
        return self.view.queues()

    def blocks(self) -> Picture:
        """Draw the block pools: who holds which block, how full it is, who shares it."""
        return self.view.blocks()

    def table(self, name: str | None = None) -> Picture:
        """Draw block tables: of one sequence (``"r0.1"``), one request, or all."""
        return self.view.table(name)

    def timeline(self) -> Picture:
        """Draw what every request did in each step up to the one that is looked at."""
        return self.view.timeline()

    def memory(self) -> Picture:
        """Draw how many blocks were used after each step up to the one that is looked at."""
        return self.view.memory()

    def diff(self) -> Picture:
        """Draw what the step changed."""
        return self.view.diff()

    def why(self, name: str | None = None) -> Picture:
        """Say why a request ran or did not, and what would have let it run."""
        return self.view.why(name)

    def attention(self, name: str | None = None) -> Picture:
        """Draw which slots decoding tokens read; `minivllm.tracing.attention` records it."""
        return self.view.attention(name)

    def picture(self) -> Picture:
        """Draw the whole step."""
        if self._at < 0:
            return Picture("before step 0", self._before(), lambda pen: pen.prose(self._before()))
        return self.view.picture()

    def svg(self, path: str | os.PathLike[str] | None = None, width: int = 100) -> str:
        """Return the whole picture as SVG; write it to `path` if one is given."""
        return self.picture().svg(path, width)

    def _picture_with_key(self) -> Picture:
        """Return the picture, and below it the methods there are."""
        picture = self.picture()
        return Picture(picture.title, picture.data,
                       lambda pen: [*picture.draw(pen), Text(), *_key(pen)])

    def _before(self) -> str:
        if self.engine is None:
            return "The record has no step."
        shown = self._arrivals[:_MAX_LINES]
        more = len(self._arrivals) - len(shown)
        if not shown:
            return "There are no requests yet: s.add(prompt) adds one."
        limits = self.trace.limits
        return (f"No step has been made yet. {limits.num_gpu_blocks} blocks of {limits.block_size} "
                f"tokens, {limits.max_num_batched_tokens} tokens a step. "
                f"To come: {', '.join(shown)}{f', and {more} more' if more else ''}.")

    def __repr__(self) -> str:
        return repr(self._picture_with_key())

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        return self._picture_with_key()._repr_mimebundle_(**kwargs)


def _key(pen: Pen) -> list[Text]:
    return pen.wrap([span(method, DIM) for method in KEY.split(" ")], gap=" ")
