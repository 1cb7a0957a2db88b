r"""Compares minivllm with other programs on the same machine, case by case.

Each program runs in its own process, under the Python of its own environment::

    python -m tests.bench.peers --case batch8 --rounds 5 --json batch8.json \
        --program minivllm python ~/.cache/minivllm/models/smollm2 \
        --program transformers hf/bin/python ~/.cache/minivllm/models/smollm2 \
        --program llamacpp lc/bin/python smollm2-f32.gguf \
        --program vllm vc/bin/python ~/.cache/minivllm/models/smollm2

They take turns, so that what disturbs the machine disturbs them alike.  From the first round on,
which does not count, only one runs at a time: the others are stopped, for some programs keep
looking for work when they have none.  Without ``--case`` all four comparable cases are run.
Prints tokens per second (median of the rounds), the ratio of the first program to the best of
the others, and how many tokens are equal to the first program's: after a near tie of two tokens
texts differ from there on.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from random import Random
from statistics import median

from minivllm.bench.cases import CASES
from minivllm.bench.machine import describe_machine, measure_limits

COMPARABLE = ("latency", "batch8", "throughput", "prefill")
VOCAB_SIZE = 40000  # SmolLM2 has 49,152


@dataclass
class Program:
    """A process of `peer_worker.py`, and what it has shown.

    Attributes
    ----------
    name : str
        As `peer_worker.py` calls it.
    python : str
        Of the environment that the program is installed in.
    model : str
        A directory, or a file.
    speeds : list of float
        Tokens per second of each round.
    agreement : float
        Part of the last round's tokens that the first program chose as well.
    process : subprocess.Popen or None
        Stopped (as by Ctrl-Z) from its first answer on, except while it generates.
    """

    name: str
    python: str
    model: str
    speeds: list = field(default_factory=list)
    agreement: float = 1.0
    process: subprocess.Popen | None = None

    def start(self):
        worker = Path(__file__).with_name("peer_worker.py")
        self.process = subprocess.Popen(
            [self.python, str(worker), self.name, str(Path(self.model).expanduser())],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            encoding="utf-8", start_new_session=True)

    def generate(self, prompts, max_tokens):
        """Return (seconds, tokens)."""
        os.killpg(self.process.pid, signal.SIGCONT)
        answer = ""
        with suppress(BrokenPipeError):  # it has died: so there is no answer either
            self.process.stdin.write(
                json.dumps({"prompts": prompts, "max_tokens": max_tokens}) + "\n")
            self.process.stdin.flush()
            answer = self.process.stdout.readline()
        if not answer:
            raise RuntimeError(f"{self.name} died; run `{' '.join(self.process.args)}` to see why.")
        answer = json.loads(answer)
        os.killpg(self.process.pid, signal.SIGSTOP)
        return answer["seconds"], answer["tokens"]

    def stop(self):
        os.killpg(self.process.pid, signal.SIGCONT)
        self.process.communicate()  # the end of its input is its end

    def kill(self):
        if self.process is not None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


def compare(case_name, programs, rounds):
    """Let all programs run a case in turns; round 0 warms them up."""
    case = CASES[case_name]
    for program in programs:
        program.speeds, program.agreement = [], 1.0
    for round_number in range(rounds + 1):
        requests = case.make_requests(Random(round_number), VOCAB_SIZE)
        prompts = [request.prompt_token_ids for request in requests]
        first_tokens = None
        for program in programs:
            seconds, tokens = program.generate(prompts, requests[0].max_tokens)
            first_tokens = first_tokens or tokens
            program.agreement = agreement(first_tokens, tokens)
            if round_number:
                program.speeds.append(case.tokens_that_count(requests) / seconds)


def agreement(first, second):
    """Return the part of the tokens that are equal."""
    pairs = [pair for row in zip(first, second, strict=True) for pair in zip(*row, strict=True)]
    return sum(a == b for a, b in pairs) / len(pairs)


def result(case_name, programs):
    """Return what goes into the table and the JSON file."""
    first, *others = programs
    best = max((median(program.speeds) for program in others), default=None)
    return {
        "case": case_name,
        "programs": [{"name": p.name, "tokens_per_second": p.speeds, "agreement": p.agreement}
                     for p in programs],
        "ratio_to_best_other": best and median(first.speeds) / best,
        # The fastest round of each: what a disturbed machine can still tell.
        "ratio_of_best_rounds": best and max(first.speeds) / max(
            speed for program in others for speed in program.speeds)}


def print_result(entry):
    print(f"\n{entry['case']}: {CASES[entry['case']].description}")
    for program in entry["programs"]:
        speeds = program["tokens_per_second"]
        print(f"  {program['name']:14}{median(speeds):9.1f} tokens/s ({min(speeds):.1f} to "
              f"{max(speeds):.1f}), {program['agreement']:.0%} of tokens equal")
    if entry["ratio_to_best_other"]:
        print(f"  ratio to the best other: {entry['ratio_to_best_other']:.2f} (of the best "
              f"rounds: {entry['ratio_of_best_rounds']:.2f})", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--case", action="append", choices=COMPARABLE)
    parser.add_argument("--program", action="append", nargs=3, required=True,
                        metavar=("NAME", "PYTHON", "MODEL"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    programs = [Program(*words) for words in args.program]
    report = {"format": "minivllm-peers/1", "machine": asdict(describe_machine()),
              "limits": asdict(measure_limits()), "cases": []}
    for end in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(end, lambda *_: sys.exit(1))  # so that nobody is left behind, stopped
    try:
        for program in programs:
            program.start()
        for case_name in args.case or COMPARABLE:
            compare(case_name, programs, args.rounds)
            report["cases"].append(result(case_name, programs))
            print_result(report["cases"][-1])
    except BaseException:
        for program in programs:
            program.kill()
        raise
    for program in programs:
        program.stop()
    if args.json:
        args.json.write_text(json.dumps(report) + "\n", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
