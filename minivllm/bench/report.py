"""A measured case as text."""

from collections.abc import Iterator
from statistics import median

from minivllm.bench.run import CaseReport, VariantReport
from minivllm.bench.stages import StageTimes


def report_lines(report: CaseReport) -> Iterator[str]:
    """Yield the lines of a report."""
    machine, limits = report.machine, report.limits
    load = "unknown" if machine.load is None else f"{machine.load:.1f}"
    yield f"{report.case}: {report.description}; {report.model}"
    yield (f"{machine.cpu}, {machine.num_cores} cores, {machine.num_threads} threads, load {load}; "
           f"{machine.system}, Python {machine.python}, NumPy {machine.numpy}")
    yield (f"limits: reads {limits.read_bandwidth / 1e9:.1f} GB/s, "
           f"multiplies {limits.sgemm / 1e9:.0f} GFLOP/s")
    for name, variant in report.variants.items():
        yield ""
        yield from _variant_lines(name, variant, report.counts_prompts)
    if len(report.variants) == 2:
        yield ""
        yield from _comparison_lines(report)


def _variant_lines(name: str, variant: VariantReport, counts_prompts: bool) -> Iterator[str]:
    what = "prompt tokens/s" if counts_prompts else "generated tokens/s"
    speeds = variant.tokens_per_second
    yield (f"{name}: {median(speeds):.1f} {what} ({min(speeds):.1f} to {max(speeds):.1f} in "
           f"{len(speeds)} runs)")
    yield (f"  first token after {median(variant.time_to_first_token) * 1e3:.0f} ms, "
           f"worst gap between tokens {median(variant.worst_gap) * 1e3:.0f} ms")
    if variant.hit_rate:
        yield f"  {variant.hit_rate:.1%} of prompt tokens found in the cache"
    yield "  slots of the KV cache, mean over steps: " + ", ".join(
        f"{kind} {slots:,.0f}" for kind, slots in variant.mean_slots.items())
    for kind, times in (("prompts", variant.prefill), ("only decodes", variant.decode)):
        if times.num_steps:
            yield from _stage_lines(f"{times.num_steps} steps with {kind}", times)


def _stage_lines(title: str, times: StageTimes) -> Iterator[str]:
    total = sum(times.seconds.values())
    yield f"  {title + ', ms each':30}{'':>10}{'share':>8}{'limit':>10}{'of limit':>10}"
    for stage, seconds in sorted(times.seconds.items(), key=lambda item: -item[1]):
        line = f"    {stage:28}{seconds / times.num_steps * 1e3:10.2f}{seconds / total:8.1%}"
        if least := times.least_seconds.get(stage):
            line += f"{least / times.num_steps * 1e3:10.2f}{least / seconds:10.0%}"
        yield line
    yield f"    {'all':28}{total / times.num_steps * 1e3:10.2f}"


def _comparison_lines(report: CaseReport) -> Iterator[str]:
    (first, before), (second, after) = report.variants.items()
    yield (f"{second} beside {first}: {median(before.seconds) / median(after.seconds):.2f} times "
           f"the speed, first token after "
           f"{median(after.time_to_first_token) / median(before.time_to_first_token):.2f} of the "
           f"time, worst gap {median(after.worst_gap) / median(before.worst_gap):.2f} of it")
