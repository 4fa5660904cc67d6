"""A few of the invocations of `mutations`, which runs thousands when asked."""

from tests.app.cli.mutations import attack, attack_columns


def test_mutated_invocations_end_without_a_traceback():
    found = attack(25, seed=1)
    assert found.wrong == [] and sum(found.ends.values()) == 25


def test_columns_are_matched_by_name_or_rejected():
    found = attack_columns(30, seed=1)
    assert found.wrong == [] and set(found.ends) == {0, 2}
