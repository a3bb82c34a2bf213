"""The commands by group, the important ones first: name, place and one line for the list of commands."""

from maskwise.cli.lazy import LazyCommand

SUMMARIES: dict[str, dict[str, tuple[str, str]]] = {
    "Evaluate": {
        "eval": (
            "evaluate:evaluate_model",
            "Evaluate a model on a dataset and write a report",
        ),
        "score": ("score:score_predictions", "Score predictions made elsewhere"),
        "compare": ("report:compare", "Compare two runs on one dataset"),
        "gallery": ("gallery:gallery", "Show the predictions of runs side by side"),
        "explain": ("explain:explain", "Say why a run loses points"),
        "ladder": (
            "ladder:ladder",
            "Score the same predictions under every published rule",
        ),
        "probe": ("probe:app", "Measure the risks that dataset cards name"),
        "judge": ("judge:app", "Judge the answers of a run, offline or by a model"),
        "report": ("report:report", "Write a run as a page, Markdown or JSON"),
        "table": ("table:table", "Write runs side by side as a table for a paper"),
        "leaderboard": ("leaderboard:leaderboard", "Rank runs, as a table or a site"),
        "ls": (
            "listing:ls",
            "List benchmarks, formats, protocols, models and downloads",
        ),
        "adapters": ("adapters:adapters", "List the adapters for published models"),
    },
    "Data": {
        "get": ("get:get", "Download a benchmark or weights"),
        "read": ("read:read", "Read a benchmark or format into a dataset folder"),
        "card": ("card:card", "Print what is known of a benchmark or format"),
        "show": ("datasets:show", "Draw a sample with its masks"),
        "stats": ("datasets:stats", "Count what a dataset contains"),
        "validate": ("datasets:validate", "Check a dataset for mistakes"),
        "write": ("write:write", "Write a dataset in another format"),
        "merge": ("merge:merge", "Merge datasets into one folder"),
        "world": ("world:world", "Make procedural scenes with exact masks"),
    },
    "Build and review": {
        "build": ("build:app", "Write questions and answers for annotated images"),
        "audit": ("audit:audit", "Rank samples whose labels are doubtful"),
        "rescore": ("audit:rescore", "Score runs again on a corrected dataset"),
        "review": ("review:app", "Let people check a dataset on a web page"),
        "release": ("release:release", "Release a version of a dataset"),
        "verify": (
            "verify:verify",
            "Check that a release is intact, and who signed it",
        ),
        "diff": ("diff:diff", "Say what changed between two versions"),
    },
    "Train": {
        "train": ("train:train", "Train a model"),
        "export": ("train:export", "Write a trained model in the form it is used in"),
    },
    "Ask and serve": {
        "ask": ("ask:ask", "Ask a question about an image"),
        "serve": ("serve:serve", "Serve a model and pages to ask and browse"),
        "intent": ("intent:intent", "Say whether a question wants hidden parts too"),
        "info": ("info:info", "Say what is installed and in use"),
    },
    "Other tools": {
        "lmms-eval": ("lmms_eval:lmms_eval", "Write tasks for lmms-eval"),
        "publish": ("publish:publish", "Publish the results of a run"),
        "worker": ("worker:worker", "Write the file that serves an older environment"),
    },
}
"""By group and command: `module:name` below maskwise.cli, and a line that fits beside the name in 80 columns."""


def list_commands() -> list[LazyCommand]:
    """Every command, in the order of the help."""
    commands = []
    for group, summaries in SUMMARIES.items():
        for name, (place, summary) in summaries.items():
            location = f"maskwise.cli.{place}"
            commands.append(LazyCommand(name, location, summary, group=group))
    return commands
