"""Blocks of the KV cache."""

from __future__ import annotations

import random

from sparktui.sim.model.kv import KvBlocks
from sparktui.sim.model.prefix import block_keys, count_tokens


def test_idle_blocks_can_be_found_until_their_room_is_needed() -> None:
    kv = KvBlocks(16 * 4)
    kv.take(3)
    assert [kv.publish(key) for key in (1, 2, 3)] == [True, True, True]
    kv.drop([1, 2, 3])
    assert (kv.used, kv.free, kv.hits([1, 2, 3, 9])) == (0, 4, 3)
    kv.take(2)
    assert kv.hits([1, 2, 3]) == 2, "the prompt's end goes first"
    kv.take(2)
    assert (kv.hits([1]), kv.usage) == (0, 1.0)


def test_a_block_is_shared_by_its_holders() -> None:
    kv = KvBlocks(16 * 4)
    kv.take(1)
    kv.publish(7)
    kv.hold([7])
    assert kv.used == 1
    assert not kv.publish(7), "a second copy stays private"
    kv.drop([7])
    assert (kv.used, kv.idle([7])) == (1, 0)
    kv.drop([7])
    assert (kv.used, kv.idle([7])) == (0, 1)
    kv.hold([7])
    assert (kv.used, kv.idle([7])) == (1, 0)


def test_hits_stop_at_the_first_gap() -> None:
    kv = KvBlocks(16 * 10)
    kv.take(2)
    kv.publish(1)
    kv.publish(3)
    assert kv.hits([1, 2, 3]) == 1


def test_keys_tell_whole_beginnings_apart() -> None:
    text = "".join(random.Random(1).choices("abcdefgh", k=640))
    keys = block_keys(text)
    assert len(keys) == count_tokens(text) // 16 == 10
    assert block_keys(text[:330]) == keys[:5]
    assert block_keys("x" + text[1:])[-1] != keys[-1]
    assert block_keys("short") == ()


def test_the_cache_is_forgotten_only_while_nobody_holds_a_block() -> None:
    kv = KvBlocks(16 * 4)
    kv.take(1)
    kv.publish(7)
    assert not kv.forget()
    kv.drop([7])
    assert kv.hits([7]) == 1
    assert kv.forget()
    assert kv.hits([7]) == 0
