import torch

from producers.rollouts.key_value_cache import Arena, CacheShape, Slab, SlabStore, WorkingCache

SHAPE = CacheShape(layers=2, heads=1, width=3)


def slab(*ids: int) -> Slab:
    return Slab(ids, torch.full((2, 2, 1, len(ids), 3), float(ids[0])))


def test_a_slab_serves_only_ids_that_it_is_a_true_prefix_of() -> None:
    store = SlabStore()
    store.put("a", slab(1, 2, 3))
    assert store.get("a", [1, 2, 3, 4]) is not None
    assert store.get("a", [1, 2, 3]) is None
    assert store.get("a", [1, 2, 9, 4]) is None
    assert store.get("b", [1, 2, 3, 4]) is None


def test_the_store_keeps_to_its_limit_and_drops_the_oldest() -> None:
    size = slab(1, 2).tensor.nbytes
    store = SlabStore(limit=3 * size)
    for number, attempt in enumerate("abcd"):
        store.put(attempt, slab(number, 2))
        assert len(store) <= 3
    assert store.get("a", [0, 2, 5]) is None
    assert store.get("d", [3, 2, 5]) is not None
    store.put("d", slab(7, 2))
    assert len(store) == 3
    store.drop("d")
    store.drop("absent")
    assert len(store) == 2


def test_compaction_keeps_rows_whole_and_in_order() -> None:
    cache = WorkingCache(Arena().take(SHAPE, 4, 5))
    for row in range(4):
        cache.put(row, slab(row + 1, 0, 0).tensor)
    cache.keep(torch.tensor([1, 3]), 3)
    assert cache.tensor.shape[2] == 2
    assert torch.equal(cache.take(0, 3), slab(2, 0, 0).tensor)
    assert torch.equal(cache.take(1, 3), slab(4, 0, 0).tensor)


def test_keys_and_values_land_at_their_positions() -> None:
    cache = WorkingCache(Arena().take(SHAPE, 3, 6))
    positions = torch.tensor([[0], [4]])
    keys, values = torch.ones(2, 1, 1, 3), torch.full((2, 1, 1, 3), 2.0)
    seen_keys, seen_values = cache.at(slice(1, 3), positions, 5).update(keys, values, 1)
    assert seen_keys.shape == (2, 1, 5, 3)
    assert seen_keys[0, 0, 0].tolist() == [1.0] * 3 and seen_values[1, 0, 4].tolist() == [2.0] * 3
    assert cache.tensor[0].abs().sum() == 0 and cache.tensor[1, :, 0].abs().sum() == 0


def test_an_arena_grows_and_is_used_again() -> None:
    arena = Arena()
    first = arena.take(SHAPE, 2, 4)
    again = arena.take(SHAPE, 1, 4)
    assert again.data_ptr() == first.data_ptr()
    assert torch.isfinite(arena.take(SHAPE, 8, 9)).all()
