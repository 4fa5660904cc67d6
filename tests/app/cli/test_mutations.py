"""A few of the invocations of `mutations`, which runs thousands when asked."""

from tests.app.cli.mutations import attack, attack_columns


def test_changed_invocations_end_in_sentences():
    found = attack(25, seed=1)
    assert found.wrong == [] and sum(found.ends.values()) == 25


def test_columns_go_by_name_or_are_refused():
    found = attack_columns(30, seed=1)
    assert found.wrong == [] and set(found.ends) == {0, 2}
