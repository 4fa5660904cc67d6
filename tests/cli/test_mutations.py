"""A few of the invocations of `mutations`, which runs thousands when asked."""

from tests.cli.mutations import attack


def test_changed_invocations_end_in_sentences():
    found = attack(25, seed=1)
    assert found.wrong == [] and sum(found.ends.values()) == 25
