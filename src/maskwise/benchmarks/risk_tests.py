"""The results of risk probes on a card: tested only where a run shows it."""

from collections.abc import Iterator

from maskwise.benchmarks.benchmark import RISK_PROBES, RISKS, CardRisks, RiskTest


def describe_risk_tests(risks: CardRisks) -> Iterator[str]:
    """A line per test, and one for every named risk that no run has tested."""
    for test in risks.tests:
        yield describe_test(test)
    measured = {test.risk for test in risks.tests if test.severity != "unmeasured"}
    categories = [name for name in risks.risk_categories if name in RISK_PROBES]
    for risk in [*risks.atlas_risks, *categories]:
        if risk not in measured:
            options = " ".join(f"--probe {name}" for name in RISK_PROBES[risk])
            yield (
                f"{risk_label(risk)} (`{risk}`): not tested. To test it: "
                f"`maskwise probe DATASET --model MODEL {options}`"
            )
    if risks.untested:
        yield risks.untested


def describe_test(test: RiskTest) -> str:
    """What a probe found, with everything that is needed to repeat it."""
    subject = f"{test.model} on {test.dataset}" if test.model else test.dataset
    verdict = f"severity {test.severity}"
    if test.severity == "unmeasured":
        verdict = "not measured"
    elif test.severity == "none":
        verdict = "no finding"
    return (
        f"{risk_label(test.risk)} (`{test.risk}`), probe `{test.probe}`: {verdict}. "
        f"{test.finding} ({subject}, {test.questions:,} questions, {test.date}, "
        f"maskwise {test.maskwise}: `{test.command}`)"
    )


def risk_label(risk: str) -> str:
    """The label of a risk of the AI Risk Atlas, without its category; another name in words."""
    if risk in RISKS:
        return RISKS[risk].partition(" (")[0]
    return risk.replace("-", " ").capitalize()
