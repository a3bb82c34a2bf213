"""Send requests to a language model: those without a recorded answer, within a budget, in batches or one by one.

Every request becomes a completion. A reply that cannot be used is asked for once more, with the error. A request that
the provider does not take is sent again a few times and then given up, alone: the others go on. Only replies are
recorded as answers, so a later run sends what failed again.
"""

import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import islice
from types import TracebackType
from typing import TypeVar

import msgspec

from maskwise.writers.client import BusyError, Client, LostReplyError, WriterError
from maskwise.writers.cost import ModelPrice, token_cost, worst_cost
from maskwise.writers.ledger import BatchRecord, Ledger
from maskwise.writers.request import (
    Completion,
    CompletionRequest,
    Thinking,
    check_fields,
    shorten_reason,
)

T = TypeVar("T")

MAX_ROUNDS = 3
"""How often requests that expired in a batch are submitted again."""

TOGETHER = 1000
"""Requests, with their images, that are in memory while batches run."""

AHEAD = 4
"""Requests per connection that are prepared before their turn, so that a slow answer does not stop the others."""

FIRST_WAIT = 0.5
LONGEST_WAIT = 60.0
"""Seconds before a request is sent again: doubled each time, unless the provider names a time."""

LOST_ATTEMPTS = 2
"""How often a request is sent whose reply breaks off or does not come in time. Each may be paid for."""

FAILED_IN_A_ROW = 20
"""So many requests that fail without an answer in between stop the run: the fault is not in the images."""

REPAIR = """\


Your last reply could not be used: {reason}
Reply again, with nothing but the JSON object."""


class BudgetError(WriterError):
    """The next request might exceed the budget. What was answered is recorded."""


@dataclass(frozen=True)
class SendLimits:
    """budget: US dollars, over all runs of the ledger; concurrency: requests in flight; batch_size: requests per
    batch, 0 for no batches; poll_seconds: time between two looks at running batches; max_retries: how often a request
    is sent again that the provider did not take; timeout: seconds after which a request is given up, with its
    retries; retry_failed: ask again where the recorded answer was of no use.
    """

    budget: float | None = None
    concurrency: int = 8
    batch_size: int = 0
    poll_seconds: float = 30.0
    max_retries: int = 6
    timeout: float = 600.0
    retry_failed: bool = False


def complete(
    requests: Iterable[CompletionRequest],
    client: Client,
    ledger: Ledger,
    *,
    price: ModelPrice,
    limits: SendLimits | None = None,
    done: Callable[[int], None] = lambda count: None,
) -> Iterator[Completion]:
    """The completion of every request, in order. Nothing that the ledger holds an answer to is sent.

    requests: taken a few at a time, so that sending starts while later ones are made. done: called with 1 for every
    completion.
    """
    with Sender(client, ledger, price=price, limits=limits) as sender:
        for completion in sender.complete(requests):
            done(1)
            yield completion


class Sender:
    """Sends requests with one client, one ledger and one set of limits. A context manager.

    Several iterations of `complete` may be open at once: they share the connections and the limits. When the block
    ends, answers that are still awaited are recorded first: they are paid for.
    """

    def __init__(
        self,
        client: Client,
        ledger: Ledger,
        *,
        price: ModelPrice,
        limits: SendLimits | None = None,
    ) -> None:
        self.client = client
        self.ledger = ledger
        self.price = price
        self.limits = limits or SendLimits()
        self._pool = ThreadPoolExecutor(self.limits.concurrency, "request")
        self._stopped = threading.Event()
        self._changed = threading.Condition()
        self._in_flight = 0
        self._failed_in_a_row = 0
        self._first_error: WriterError | None = None

    def __enter__(self) -> "Sender":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop()
        self._pool.shutdown(cancel_futures=True)

    def complete(self, requests: Iterable[CompletionRequest]) -> Iterator[Completion]:
        """The completion of every request, in order."""
        for batch in self.ledger.open_batches(self.client.provider, self.client.model):
            self._reattach(batch)
        if self.limits.batch_size and self.client.has_batches:
            return self._complete_in_batches(requests)
        return self._complete_one_by_one(requests)

    # -- one by one

    def _complete_one_by_one(
        self, requests: Iterable[CompletionRequest]
    ) -> Iterator[Completion]:
        """Requests go to the pool as they come, a few more than it has threads."""
        waiting: deque[tuple[str, Future[Completion]]] = deque()
        by_key: dict[str, Future[Completion]] = {}
        try:
            for request in requests:
                key = request.key(self.client.model)
                # An equal request that is in flight is not sent twice.
                if key not in by_key:
                    by_key[key] = self._pool.submit(self._answer, request)
                waiting.append((key, by_key[key]))
                while waiting and (
                    waiting[0][1].done()
                    or len(waiting) > AHEAD * self.limits.concurrency
                ):
                    yield _pop_result(waiting, by_key)
            while waiting:
                yield _pop_result(waiting, by_key)
        except WriterError as error:
            # What the first request met, not that others were stopped because of it.
            raise self._first_error or error from None

    def _answer(self, request: CompletionRequest) -> Completion:
        """The answer to a request; one that cannot be used is asked for once more."""
        try:
            completion = self._answer_once(request)
            repair = make_repair(request, completion)
            return completion if repair is None else self._answer_once(repair)
        except WriterError as error:
            with self._changed:
                self._first_error = self._first_error or error
            self._stop()
            raise

    def _answer_once(self, request: CompletionRequest) -> Completion:
        key = request.key(self.client.model)
        known = self._recorded(key, request)
        if known is not None:
            return known
        for _ in range(LOST_ATTEMPTS):
            self._reserve(key, request)
            try:
                return self._send_and_record(key, request)
            except LostReplyError as error:
                lost = _failure(error)
            finally:
                with self._changed:
                    self._in_flight -= 1
                    self._changed.notify_all()
        return self._count_failure(lost)

    def _send_and_record(self, key: str, request: CompletionRequest) -> Completion:
        try:
            completion = self._send(request)
        except WriterError as error:
            is_lost = isinstance(error, LostReplyError)
            self.ledger.record_failed(key, _failure(error), paid=is_lost)
            if isinstance(error, BusyError) and not error.general:
                return self._count_failure(_failure(error))
            raise
        if completion.status == "failed":
            self.ledger.record_failed(key, completion, paid=False)
            return self._count_failure(completion)
        self._failed_in_a_row = 0
        checked = check_fields(completion, request.schema)
        self._record({key: checked}, {key: request}, batch=False)
        return checked

    def _reserve(self, key: str, request: CompletionRequest) -> None:
        """Record what a request may cost. Where the budget allows it only if requests in flight cost less than they
        may, their answers are waited for.
        """
        with self._changed:
            self._check_stopped()
            while not self._record_sent({key: request}):
                if not self._in_flight:
                    raise self._budget_error({key: request}, batch=False)
                self._changed.wait()
                self._check_stopped()
            self._in_flight += 1

    def _send(self, request: CompletionRequest) -> Completion:
        """Send a request, again if the provider did not take it, until the time is over."""
        end = time.monotonic() + self.limits.timeout
        wait = FIRST_WAIT
        for attempt in range(self.limits.max_retries + 1):
            self._check_stopped()
            try:
                return run_within(
                    end - time.monotonic(), lambda: self.client.complete(request)
                )
            except BusyError as error:
                seconds = min(LONGEST_WAIT, wait if error.wait is None else error.wait)
                is_late = time.monotonic() + seconds >= end
                if attempt == self.limits.max_retries or is_late:
                    raise
            self._stopped.wait(seconds)
            wait *= 2
        raise AssertionError("the last attempt returns or raises")

    def _count_failure(self, completion: Completion) -> Completion:
        """The completion of a request that brought nothing; WriterError if all the last ones did."""
        with self._changed:
            self._failed_in_a_row += 1
            is_last = self._failed_in_a_row >= FAILED_IN_A_ROW
        if is_last:
            raise WriterError(
                f"{FAILED_IN_A_ROW} requests in a row failed, the last one with: {completion.reason}; "
                "answers are kept, and repeating the command continues"
            )
        return completion

    # -- batches

    def _complete_in_batches(
        self, requests: Iterable[CompletionRequest]
    ) -> Iterator[Completion]:
        """Submit requests in batches and wait for them; what cannot be used goes into one more batch."""
        source = iter(requests)
        while group := [*islice(source, TOGETHER)]:
            answers = self._answer_in_batches(group)
            repairs: dict[int, CompletionRequest] = {}
            for place, request in enumerate(group):
                repair = make_repair(request, answers[place])
                if repair is not None:
                    repairs[place] = repair
            repaired = self._answer_in_batches([*repairs.values()])
            for place, completion in zip(repairs, repaired):
                answers[place] = completion
            yield from answers

    def _answer_in_batches(
        self, requests: Sequence[CompletionRequest]
    ) -> list[Completion]:
        """The completion of every request, in order; what expired is submitted again."""
        by_key = {request.key(self.client.model): request for request in requests}
        answers: dict[str, Completion] = {}
        for key, request in by_key.items():
            known = self._recorded(key, request)
            if known is not None:
                answers[key] = known
        for _ in range(MAX_ROUNDS):
            left = [key for key in by_key if key not in answers]
            for first in range(0, len(left), self.limits.batch_size):
                keys = left[first : first + self.limits.batch_size]
                self._submit({key: by_key[key] for key in keys})
            client = self.client
            for batch in self.ledger.open_batches(client.provider, client.model):
                answers |= self._collect(batch, by_key)
            if len(answers) == len(by_key):
                ordered = [request.key(client.model) for request in requests]
                return [answers[key] for key in ordered]
        raise WriterError(
            f"{len(by_key) - len(answers)} requests expired in {MAX_ROUNDS} batches; "
            "repeat the command to send them again"
        )

    def _submit(self, requests: dict[str, CompletionRequest]) -> None:
        label = uuid.uuid4().hex
        if not self._record_sent(requests, batch=label):
            raise self._budget_error(requests, batch=True)
        self.ledger.record_batch(label, self.client.submit(requests, label))

    def _reattach(self, batch: BatchRecord) -> None:
        """Wait for a batch of an earlier run; one that never reached the provider is forgotten."""
        keys = self.ledger.batch_keys(batch.label)
        id = batch.id or self.client.find_batch(
            batch.label, keys=keys, since=batch.created
        )
        if id is None:
            self.ledger.finish_batch(batch.label)
            return
        self.ledger.record_batch(batch.label, id)
        self._collect(batch._replace(id=id), {})

    def _collect(
        self, batch: BatchRecord, requests: Mapping[str, CompletionRequest]
    ) -> dict[str, Completion]:
        """Wait for a batch and record it; the completions of the given requests, by key."""
        assert batch.id is not None, "a submitted batch has an id"
        completions = self.client.collect(batch.id)
        while completions is None:
            time.sleep(self.limits.poll_seconds)
            completions = self.client.collect(batch.id)
        keys = self.ledger.batch_keys(batch.label)
        own = {key: item for key, item in completions.items() if key in keys}
        for key in own.keys() & requests.keys():
            own[key] = check_fields(own[key], requests[key].schema)
        answered = {}
        for key, completion in own.items():
            if completion.status == "failed":
                self.ledger.record_failed(key, completion, paid=False)
            else:
                answered[key] = completion
        self._record(answered, requests, batch=True)
        self.ledger.finish_batch(batch.label)
        return {key: item for key, item in own.items() if key in requests}

    # -- both

    def _recorded(self, key: str, request: CompletionRequest) -> Completion | None:
        """What the ledger holds for a request; None if it is to be sent."""
        completion = self.ledger.completion(key)
        if completion is None:
            return None
        checked = check_fields(completion, request.schema)
        is_wanted = checked.status == "ok" or not self.limits.retry_failed
        return checked if is_wanted else None

    def _record(
        self,
        completions: Mapping[str, Completion],
        requests: Mapping[str, CompletionRequest],
        *,
        batch: bool,
    ) -> None:
        """Keep replies with their costs. One that does not say its tokens counts as the most that it may cost."""
        rows = []
        for key, completion in completions.items():
            cost = token_cost(completion, self.price, batch=batch)
            says_tokens = completion.input_tokens or completion.output_tokens
            if not says_tokens and key in requests:
                cost = worst_cost(requests[key], self.price, batch=batch)
            rows.append((key, completion, cost))
        self.ledger.record_answered(rows)

    def _record_sent(
        self, requests: Mapping[str, CompletionRequest], *, batch: str | None = None
    ) -> bool:
        """Reserve what requests may cost; False if that might exceed the budget."""
        return self.ledger.record_sent(
            requests,
            provider=self.client.provider,
            model=self.client.model,
            batch=batch,
            reserved=self._worst_costs(requests, batch=batch is not None),
            budget=self.limits.budget,
        )

    def _worst_costs(
        self, requests: Mapping[str, CompletionRequest], *, batch: bool
    ) -> dict[str, float]:
        return {
            key: worst_cost(request, self.price, batch=batch)
            for key, request in requests.items()
        }

    def _budget_error(
        self, requests: Mapping[str, CompletionRequest], *, batch: bool
    ) -> BudgetError:
        spent, reserved = self.ledger.spending
        unknown = ""
        if reserved:
            unknown = f", up to ${reserved:.4f} more for requests whose answers were not received,"
        next_cost = sum(self._worst_costs(requests, batch=batch).values())
        return BudgetError(
            f"stopped before exceeding the budget of ${self.limits.budget:.2f}: ${spent:.4f} is spent{unknown} and "
            f"the next requests may cost up to ${next_cost:.4f}; repeat with a larger budget to continue "
            "(--budget of `maskwise build`, --model-option budget= of the model photo)"
        )

    def _check_stopped(self) -> None:
        if self._stopped.is_set():
            raise WriterError("the run was stopped")

    def _stop(self) -> None:
        """Send no more requests; those that wait for the budget or for another attempt give up."""
        self._stopped.set()
        with self._changed:
            self._changed.notify_all()


def make_repair(
    request: CompletionRequest, completion: Completion
) -> CompletionRequest | None:
    """The request that asks again after a reply that cannot be used; None where that would not help."""
    if completion.status == "invalid":
        text = request.text + REPAIR.format(reason=completion.reason)
        return msgspec.structs.replace(request, text=text)
    if completion.status == "truncated":
        longer = msgspec.structs.replace(request, max_tokens=2 * request.max_tokens)
        if not request.thinking:
            return longer
        thinking = Thinking(
            tokens=2 * request.thinking.tokens, effort=request.thinking.effort
        )
        return msgspec.structs.replace(longer, thinking=thinking)
    return None


def run_within(seconds: float, function: Callable[[], T]) -> T:
    """The result of a function; LostReplyError if it takes longer.

    A timeout of the connection is not enough: a server that sends a byte per second never reaches it. The thread that
    is given up ends with its connection, or with the process.
    """
    future: Future[T] = Future()

    def work() -> None:
        try:
            result = function()
        except BaseException as error:
            future.set_exception(error)
        else:
            future.set_result(result)

    threading.Thread(target=work, daemon=True, name="attempt").start()
    try:
        return future.result(max(0.0, seconds))
    except TimeoutError:
        if future.done():
            raise
        raise LostReplyError(
            f"no complete reply within {seconds:.0f} s (--timeout)"
        ) from None


def _pop_result(
    waiting: deque[tuple[str, Future[Completion]]],
    by_key: dict[str, Future[Completion]],
) -> Completion:
    """The completion that is next in order."""
    key, future = waiting.popleft()
    completion = future.result()
    by_key.pop(key, None)
    return completion


def _failure(error: WriterError) -> Completion:
    return Completion(status="failed", reason=shorten_reason(str(error)))
