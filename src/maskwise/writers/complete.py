"""Send the requests of a build: those without a recorded completion, within a budget, in batches or one by one."""

import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass

from maskwise.writers.client import Client, WriterError
from maskwise.writers.cost import ModelPrice, estimate_tokens, token_cost
from maskwise.writers.ledger import BatchRecord, Ledger
from maskwise.writers.request import Completion, CompletionRequest

MAX_ROUNDS = 3
"""How often requests that expired in a batch are submitted again."""


class BudgetError(WriterError):
    """The next request might exceed the budget. What was answered is recorded."""


@dataclass(frozen=True)
class SendLimits:
    """budget: US dollars, over all runs of the ledger; concurrency: requests in flight; batch_size: requests per
    batch, 0 for no batches; poll_seconds: time between two looks at running batches.
    """

    budget: float | None = None
    concurrency: int = 8
    batch_size: int = 0
    poll_seconds: float = 30.0


@dataclass(frozen=True)
class _Sender:
    """What sending needs: where to, what it costs, how much is allowed."""

    client: Client
    ledger: Ledger
    price: ModelPrice
    limits: SendLimits
    done: Callable[[int], None]

    def worst_cost(
        self, requests: Sequence[CompletionRequest], *, batch: bool
    ) -> float:
        """What requests cost if every one uses all the output tokens it may."""
        tokens = sum(estimate_tokens(request, self.price) for request in requests)
        answered = Completion(
            status="ok",
            input_tokens=tokens,
            output_tokens=sum(request.max_tokens for request in requests),
        )
        return token_cost(answered, self.price, batch=batch)

    def check_budget(self, reserved: float) -> None:
        """Refuse to send what might exceed the budget, given what is reserved for requests without an answer."""
        budget = self.limits.budget
        spent = self.ledger.cost
        if budget is not None and spent + reserved > budget:
            raise BudgetError(
                f"stopped before exceeding the budget of ${budget:.2f}: ${spent:.4f} is spent and the next requests "
                f"may cost up to ${reserved:.4f}; repeat with a larger budget to continue "
                "(--budget of `maskwise build`, --model-option budget= of the model photo)"
            )

    def record(self, completions: Mapping[str, Completion], *, batch: bool) -> None:
        """Keep completions with their costs."""
        self.ledger.record_answered(
            (key, completion, token_cost(completion, self.price, batch=batch))
            for key, completion in completions.items()
        )
        self.done(len(completions))


def complete(
    requests: Sequence[CompletionRequest],
    client: Client,
    ledger: Ledger,
    *,
    price: ModelPrice,
    limits: SendLimits | None = None,
    done: Callable[[int], None] = lambda count: None,
) -> Iterator[Completion]:
    """The completion of every request, in order. Nothing that the ledger holds an answer to is sent.

    done: called with the number of completions that were just recorded.
    """
    sender = _Sender(client, ledger, price, limits or SendLimits(), done)
    keys = [request.key(client.model) for request in requests]
    for batch in ledger.open_batches(client.provider, client.model):
        _reattach(sender, batch)
    missing = {
        key: request
        for key, request in zip(keys, requests)
        if ledger.completion(key) is None
    }
    if sender.limits.batch_size and client.has_batches:
        _send_batches(sender, missing)
    else:
        _send_calls(sender, missing)
    for key in keys:
        completion = ledger.completion(key)
        assert completion is not None, "every request was sent"
        yield completion


def _send_calls(sender: _Sender, missing: Mapping[str, CompletionRequest]) -> None:
    """Send requests one by one, a bounded number at a time, each recorded as soon as it is answered."""
    waiting = iter(missing.items())
    in_flight: dict[Future[Completion], tuple[str, float]] = {}
    with ThreadPoolExecutor(sender.limits.concurrency) as pool:
        try:
            for key, request in waiting:
                cost = sender.worst_cost([request], batch=False)
                reserved = sum(cost for _, cost in in_flight.values())
                sender.check_budget(cost + reserved)
                sender.ledger.record_sent(
                    {key: request},
                    provider=sender.client.provider,
                    model=sender.client.model,
                )
                in_flight[pool.submit(sender.client.complete, request)] = (key, cost)
                if len(in_flight) == sender.limits.concurrency:
                    _record_finished(sender, in_flight)
        finally:
            # All of them: answers that follow a failed request are paid for, too.
            errors: list[BaseException] = []
            while in_flight:
                try:
                    _record_finished(sender, in_flight)
                except WriterError as error:
                    errors.append(error)
        if errors:
            raise errors[0]


def _record_finished(
    sender: _Sender, in_flight: dict[Future[Completion], tuple[str, float]]
) -> None:
    """Wait for at least one request in flight and record all that are answered; the first error is raised."""
    finished, _ = wait(in_flight, return_when=FIRST_COMPLETED)
    answered = {}
    errors = []
    for future in finished:
        key, _ = in_flight.pop(future)
        error = future.exception()
        if error is None:
            answered[key] = future.result()
        else:
            errors.append(error)
    sender.record(answered, batch=False)
    if errors:
        raise errors[0]


def _send_batches(sender: _Sender, missing: Mapping[str, CompletionRequest]) -> None:
    """Submit requests in batches and wait for all of them; what expired is submitted again."""
    left = dict(missing)
    size = sender.limits.batch_size
    for _ in range(MAX_ROUNDS):
        keys = list(left)
        reserved = 0.0
        for first in range(0, len(keys), size):
            requests = {key: left[key] for key in keys[first : first + size]}
            reserved += _submit(sender, requests, reserved)
        client = sender.client
        for batch in sender.ledger.open_batches(client.provider, client.model):
            _collect(sender, batch)
        left = {
            key: request
            for key, request in left.items()
            if sender.ledger.completion(key) is None
        }
        if not left:
            return
    raise WriterError(
        f"{len(left)} requests expired in {MAX_ROUNDS} batches; repeat the command to send them again"
    )


def _submit(
    sender: _Sender, requests: dict[str, CompletionRequest], reserved: float
) -> float:
    """Submit a batch, given what is reserved for others; returns what it may cost at most."""
    client = sender.client
    ledger = sender.ledger
    cost = sender.worst_cost(list(requests.values()), batch=True)
    sender.check_budget(reserved + cost)
    label = uuid.uuid4().hex
    ledger.record_sent(
        requests, provider=client.provider, model=client.model, batch=label
    )
    ledger.record_batch(label, client.submit(requests, label))
    return cost


def _reattach(sender: _Sender, batch: BatchRecord) -> None:
    """Wait for a batch of an earlier run; one that never reached the provider is forgotten."""
    keys = sender.ledger.batch_keys(batch.label)
    id = batch.id or sender.client.find_batch(
        batch.label, keys=keys, since=batch.created
    )
    if id is None:
        sender.ledger.finish_batch(batch.label)
        return
    sender.ledger.record_batch(batch.label, id)
    _collect(sender, batch._replace(id=id))


def _collect(sender: _Sender, batch: BatchRecord) -> None:
    assert batch.id is not None, "a submitted batch has an id"
    completions = sender.client.collect(batch.id)
    while completions is None:
        time.sleep(sender.limits.poll_seconds)
        completions = sender.client.collect(batch.id)
    keys = sender.ledger.batch_keys(batch.label)
    own = {key: item for key, item in completions.items() if key in keys}
    sender.record(own, batch=True)
    sender.ledger.finish_batch(batch.label)
