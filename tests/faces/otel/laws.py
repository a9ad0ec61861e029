"""Laws that the spans of every session must keep, whatever happened in it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from iact.core.records.dialogue import Generation, Turn
from iact.core.records.parts import Tokens
from iact.core.records.record import Record
from iact.core.records.session import Adopt, Fork
from iact.faces.otel.span import Span, trace_id
from iact.faces.otel.spans import SpanFold, spans

TOKENS = ("input_tokens", "output_tokens", "cache_read.input_tokens")


def own(records: Sequence[Record]) -> Sequence[Record]:
    """The records that are a session's own: those of a fork, from the fork on."""
    begun = [place for place, one in enumerate(records) if isinstance(one.content, Fork | Adopt)]
    return records[begun[-1] if begun else 0 :]


def check(records: Sequence[Record], *, rests: bool = True) -> tuple[Span, ...]:
    """Hold a session's spans to the laws; gives them. `rests`: nothing of it is under way."""
    made = spans(records)
    check_tree(made)
    mine = own(records)
    if rests:
        assert [one.name for one in made if one.end is None] == []
        check_calls(mine, made)
    check_usage(mine, made)
    check_prefixes(records)
    return made


def check_tree(made: Sequence[Span]) -> None:
    """One root, every other span below one that is there and that began before it, and no id twice."""
    by_id = {one.span_id: one for one in made}
    assert len(by_id) == len(made), [one for one in made if one is not by_id[one.span_id]]
    assert [one.name for one in made if not one.parent_id] == ["create_agent root"]
    session = made[0].attributes["gen_ai.conversation.id"]
    for one in made:
        assert one.trace_id == trace_id(str(session))
        assert one.attributes["gen_ai.conversation.id"] == session
        assert one.end is None or one.start <= one.end
        assert all(one.start <= event.at <= (one.end or event.at) for event in one.events), one
        if one.parent_id:
            assert one.parent_id in by_id, one.name
            assert by_id[one.parent_id].start <= one.start, (one, by_id[one.parent_id])


def check_usage(mine: Sequence[Record], made: Sequence[Span]) -> None:
    """Every text of a model is one `chat`, with its tokens, and there is no other."""
    used: dict[int, tuple[int, int, int]] = {}
    for one in mine:
        usage = getattr(one.content, "usage", None)
        generation = getattr(one.content, "generation", None)
        if isinstance(generation, Generation):
            usage = generation.usage
        if isinstance(usage, Tokens):
            assert one.n not in used
            used[one.n] = usage.prompt, usage.completion, usage.cached
    chats = [one for one in made if one.attributes["gen_ai.operation.name"] == "chat"]
    told = {
        one.attributes["iact.record"]: tuple(one.attributes[f"gen_ai.usage.{name}"] for name in TOKENS)
        for one in chats
    }
    assert len(told) == len(chats)
    assert told == used
    assert sum(isinstance(one.content, Turn) for one in mine) <= len(chats)


def check_calls(mine: Sequence[Record], made: Sequence[Span]) -> None:
    """Every verdict of the gate is an event on a call's span, the refusals, too; and every piece of work has its span."""
    verdicts = [event for one in made for event in one.events if event.name == "iact.gate.verdict"]
    gates = [one for one in mine if one.kind == "gate"]
    assert Counter(bool(one.attributes["iact.gate.allow"]) for one in verdicts) == Counter(
        bool(one.fields["allow"]) for one in gates
    )
    refused = [one for one in made if one.error == "denied"]
    # A session that is killed while a denial is delayed decides the same call again when it is opened.
    last = {(one.agent, one.fields["turn"], one.fields["action"]): bool(one.fields["allow"]) for one in gates}
    assert len(refused) == sum(not allow for allow in last.values())
    invoked = {one.attributes["gen_ai.agent.id"] for one in made if one.name.startswith("invoke_agent")}
    assert invoked >= {one.agent for one in mine if one.kind == "reply" and one.text("status") == "ok"}


def check_prefixes(records: Sequence[Record]) -> None:
    """What has ended at any record stays as it is, whatever follows; and all that went on there ends, or goes on."""
    fold, ended = SpanFold(), list[Span]()
    for n, record in enumerate(records, start=1):
        ended += fold.take(record)
        if n % max(1, len(records) // 8) == 0:
            now = [one for one in ended if one.trace_id == fold.trace_id]
            assert [one for one in spans(records[:n]) if one.end is not None] == now
    whole = {one.span_id: one for one in spans(records)}
    assert all(one == whole[one.span_id] for one in ended if one.trace_id == fold.trace_id)
