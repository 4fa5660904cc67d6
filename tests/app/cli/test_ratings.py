"""`gramian complete`, `recommend` and `evaluate`: models of ratings."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import gramian as gm
from tests.app.cli.data import answer, ratings, refused


def test_complete_and_recommend(run, folder):
    facts = answer(run, "complete", "ratings.csv", "--model", "m", "--out", "fitted.csv")
    assert facts["users"] == 30 and facts["certificate"]["relative_gap"] <= 1e-4
    assert facts["error_held_out"] < 1.0
    top = answer(run, "recommend", "alice", "--model", "m", "-n", 3)["rows"]
    seen = set(ratings().query("user == 'alice'")["item"])
    assert len(top) == 3 and not seen & {row["item"] for row in top}
    assert run("recommend", "--all", "--model", "m", "-n", 2, "--out", "all.csv")[0] == 0
    assert len(pd.read_csv("all.csv")) == 60
    pd.DataFrame({"user": ["alice", "nobody"], "item": ["film 3", "film 4"]}).to_csv(
        "pairs.csv", index=False
    )
    assert run("predict", "pairs.csv", "--model", "m", "--out", "p.csv")[0] == 0
    assert pd.read_csv("p.csv")["known"].tolist() == [1, 0]


@pytest.mark.slow
def test_finds_columns_of_ratings_by_name(run, folder):
    shuffled = ratings().assign(time=range(len(ratings())))[["time", "item", "rating", "user"]]
    shuffled.to_csv("shuffled.csv", index=False)
    facts = answer(run, "complete", "shuffled.csv")
    assert facts["columns"] == ["user", "item", "rating"] and facts["users"] == 30


def test_recommends_to_users_of_a_file_and_to_new_users(run, folder):
    assert run("complete", "ratings.csv", "--lam", 5, "--model", "m")[0] == 0
    Path("users.csv").write_text("user\nalice\nuser 7\n")
    rows = answer(run, "recommend", "--users", "users.csv", "--model", "m", "-n", 2)["rows"]
    assert [row["user"] for row in rows] == ["alice", "alice", "user 7", "user 7"]
    alone = answer(run, "recommend", "alice", "--model", "m", "-n", 2)["rows"]
    assert rows[:2] == alone
    Path("bare.txt").write_text("alice\nbob\n")
    line = ("recommend", "--users", "bare.txt", "--format", "csv", "--model", "m")
    bare = answer(run, *line)["rows"]
    assert {row["user"] for row in bare} == {"alice", "bob"}
    Path("bare.txt").write_text("user\nalize\n")
    wrong = run(*line)
    assert wrong[0] == 2 and "did you mean 'alice'?" in wrong[2]
    frame = ratings()
    own = frame[frame["user"] == "bob"].assign(user="carol")
    own.to_csv("carol.csv", index=False)
    rows = answer(run, "recommend", "--ratings", "carol.csv", "--model", "m", "-n", 3)["rows"]
    assert [row["user"] for row in rows] == ["carol"] * 3
    assert not {row["item"] for row in rows} & set(own["item"])
    like = answer(run, "recommend", "bob", "--model", "m", "-n", 3)["rows"]
    assert [row["item"] for row in rows] == [row["item"] for row in like]
    assert "name users" in run("recommend", "--model", "m")[2]


@pytest.mark.slow
def test_a_model_of_ratings_is_evaluated(run, folder):
    frame = ratings()
    held = np.arange(len(frame)) % 5 == 0
    frame[~held].to_csv("train.csv", index=False)
    frame[held].to_csv("test.csv", index=False)
    facts = answer(run, "complete", "train.csv", "--tol", "auto", "--model", "m")
    assert facts["certificate"]["relative_gap"] <= 1e-4
    scores = answer(run, "evaluate", "test.csv", "--model", "m", "-k", 5, "--relevant", 4)
    assert scores["ratings"] == held.sum() and 0 < scores["rmse"] < 1.5
    assert all(0 <= scores[name] <= 1 for name in ("precision", "recall", "ndcg", "coverage"))
    assert "--tol" in run("complete", "train.csv", "--tol", "tight")[2]
    assert (
        answer(run, "complete", "train.csv", "--tol", "1e-2")["certificate"]["relative_gap"] <= 1e-2
    )


def test_completes_implicit_feedback(run, folder):
    frame = ratings()
    frame[frame["rating"] >= 3].assign(rating=1).to_csv("done.csv", index=False)
    facts = answer(run, "complete", "done.csv", "--method", "implicit", "--model", "m")
    assert 0 <= facts["ndcg_held_out"] <= 1 and "rmse_of_the_ratings" not in facts
    assert len(answer(run, "recommend", "alice", "--model", "m", "-n", 2)["rows"]) == 2
    assert "ndcg" in answer(run, "evaluate", "done.csv", "--model", "m")


@pytest.mark.slow
def test_predictions_of_ordinal_levels_are_levels(run, folder):
    assert run("complete", "ratings.csv", "--method", "mmmf", "--model", "m")[0] in (0, 3)
    rows = answer(run, "recommend", "alice", "--model", "m", "-n", 3)["rows"]
    assert all(row["prediction"] in set(ratings()["rating"]) for row in rows)


def test_ratings_with_gaps_can_be_left_out(run, folder):
    frame = ratings()
    frame.loc[[1, 4], "item"] = None
    frame.loc[6, "rating"] = None
    frame.to_csv("gaps.csv", index=False)
    line = ("complete", "gaps.csv", "--no-verdict")
    refused(run, *line)
    assert answer(run, *line, "--missing", "drop")["ratings"] == len(frame) - 3
    assert "3 rows lack a cell" in run(*line, "--missing", "drop")[2]


def test_titles_are_kept_in_the_model(run, folder):
    frame = ratings()
    codes, items = pd.factorize(frame["item"])
    frame.assign(item=codes + 100, film=frame["item"]).to_csv("films.csv", index=False)
    line = ("complete", "films.csv", "--columns", "user,item,rating", "--no-verdict")
    assert answer(run, *line, "--titles", "film", "--model", "m")["titles"] == len(items)
    rows = answer(run, "recommend", "alice", "--model", "m", "-n", 2)["rows"]
    assert all(row["title"] == items[row["item"] - 100] for row in rows)
    films = pd.DataFrame({"movieId": np.arange(len(items)) + 100, "title": items + "!"})
    films.to_csv("movies.csv", index=False)
    assert answer(run, *line, "--titles", "movies.csv", "--model", "n")["titles"] == len(items)
    rows = answer(run, "recommend", "alice", "--model", "n", "-n", 2)["rows"]
    assert all(row["title"] == items[row["item"] - 100] + "!" for row in rows)
    run(*line, "--model", "o")
    line = ("recommend", "alice", "--model", "o", "-n", 2, "--titles", "movies.csv")
    run(*line, "--out", "o.csv")
    assert pd.read_csv("o.csv")["title"].tolist() == [row["title"] for row in rows]
    line = ("complete", "films.csv", "--columns", "user,item,rating", "--titles", "no")
    assert "neither a column" in refused(run, *line)


def test_messages_name_users_instead_of_rows(run, fitted):
    facts = answer(run, "evaluate", "ratings.csv", "--model", "ratings.gramian")
    assert "rows" not in facts and facts["users"] > 0
    twice = pd.concat([ratings(), ratings().iloc[:1]])
    twice.to_csv("twice.csv", index=False)
    sentence = refused(run, "complete", "twice.csv")
    assert "user" in sentence and "item" in sentence and "row" not in sentence


def test_recommend_names_the_kind_of_another_model(run, fitted):
    said = refused(run, "recommend", "3", "--model", "flowers.gramian")
    assert "flowers.gramian is a model of samples, not of ratings" in said


def test_repeated_users_of_a_file_are_listed_once(run, fitted):
    ratings()[["user", "item"]].head(30).to_csv("users.csv", index=False)
    rows = answer(run, "recommend", "--users", "users.csv", "--model", "ratings.gramian", "-n", 1)[
        "rows"
    ]
    users = [row["user"] for row in rows]
    assert len(users) == len(set(users)) == ratings()["user"].head(30).nunique()


def test_rejects_missing_ratings_and_names_the_option(run, folder):
    text = (folder / "ratings.csv").read_text().splitlines()
    text[3] = text[3].rpartition(",")[0] + ","
    (folder / "gap.csv").write_text("\n".join(text))
    said = refused(run, "complete", "gap.csv")
    assert "no cell in line 4" in said and "--missing drop leaves out such rows" in said


def test_recommend_names_the_written_file(run, fitted):
    out = run("recommend", "alice", "--model", "ratings.gramian", "--top", 2, "--out", "r.csv")[1]
    assert out.strip() == "2 rows written to r.csv"


@pytest.mark.slow
def test_the_verdict_on_ratings_compares_with_means(run, folder):
    facts = answer(run, "complete", "ratings.csv")
    assert facts["held_out"]["after"] < facts["held_out"]["before"]
    assert facts["verdict"].startswith("It helped: RMSE")


def test_implicit_ratings_are_noted(run, folder):
    ratings().assign(rating=1).to_csv("clicks.csv", index=False)
    status, out, err = run("complete", "clicks.csv")
    assert status == 0 and "--method implicit" in err and "every rating is 1" in out


def test_reads_wide_tables_of_ratings(run, folder):
    ratings().pivot(index="user", columns="item", values="rating").to_csv("wide.csv")
    facts = answer(run, "complete", "wide.csv", "--wide", "--lam", 5, "--model", "m")
    assert facts["ratings"] == len(ratings()) and facts["users"] == ratings()["user"].nunique()
    plain = gm.completion.NuclearCompletion(lam=5.0, random_state=0).fit(ratings())
    few = ratings().head(5)
    pairs = few["user"].to_numpy(), few["item"].to_numpy()
    np.testing.assert_allclose(gm.load("m").predict(pairs), plain.predict(pairs), rtol=1e-3)


def test_ratings_in_other_forms_name_the_option_that_fits(run, folder):
    wide = ratings().pivot(index="user", columns="item", values="rating")
    wide.to_csv("wide.csv")
    assert "--wide" in refused(run, "complete", "wide.csv")
    (folder / "one.csv").write_text("1\n2\n3\n")
    assert "one column and no header" in refused(run, "complete", "one.csv")
    (folder / "two.csv").write_text("user,item\n1,2\n3,4\n")
    assert "the columns user, item only" in refused(run, "complete", "two.csv")


def test_notes_ratings_that_were_in_the_fit(run, folder):
    assert run("complete", "ratings.csv", "--lam", 5, "--model", "m", "--no-verdict")[0] == 0
    _, out, err = run("evaluate", "ratings.csv", "--model", "m")
    count = len(ratings())
    assert f"{count} of the {count} ratings of ratings.csv were in the fit" in " ".join(err.split())
    assert "rmse" in out
    assert "did you mean 'alice'?" in refused(run, "recommend", "ce", "--model", "m")


def test_purchases_are_summed_and_compared_with_common_items(run, folder):
    rng = np.random.default_rng(0)
    taste = rng.integers(0, 4, 60)
    user = rng.integers(0, 60, 700)
    item = 8 * taste[user] + rng.integers(0, 8, 700)
    bought = pd.DataFrame({"order": np.arange(700), "user": user, "item": item, "qty": 1})
    bought.to_csv("orders.csv", index=False)
    line = ("complete", "orders.csv", "--method", "implicit", "--columns", "user,item,qty")
    assert "--duplicates mean, sum (of counts) or last" in refused(run, *line)
    facts = answer(run, *line, "--duplicates", "sum")
    assert facts["verdict"].startswith("It helped: nDCG")
    assert facts["held_out"]["before"] < facts["held_out"]["after"]


def test_suggests_users_with_similar_names(run, folder):
    answer(run, "complete", "ratings.csv", "--lam", 5, "--model", "m", "--no-verdict")
    known = str(gm.load("m").row_ids_[0])
    assert f"did you mean {known!r}" in refused(run, "recommend", known.upper(), "--model", "m")


def test_accepts_clicks_without_values(run, folder):
    clicks = ratings()[["item", "user"]]
    twice = pd.concat([clicks, clicks.head(9)])
    twice.to_csv("clicks.csv", index=False)
    assert "--method implicit" in refused(run, "complete", "clicks.csv")
    line = ("complete", "clicks.csv", "--method", "implicit", "--lam", 5, "--no-verdict")
    facts = answer(run, *line, "--model", "m")
    assert facts["ratings"] == len(clicks) and facts["users"] == 30 and facts["items"] == 20
    assert gm.load("m").columns_ == ("user", "item")
    assert run("recommend", "alice", "--model", "m", "--top", 3)[0] == 0
    named = answer(run, *line, "--columns", "user,item")
    assert named["users"] == 30 and named["certificate"] == facts["certificate"]
    clicks[["user", "item"]].iloc[::-1].to_csv("bare.csv", index=False, header=False)
    bare = answer(run, "complete", "bare.csv", *line[2:])  # "user 29", "film 5" is no header
    assert bare["ratings"] == len(clicks)
    numbers = twice.assign(user=twice["user"].rank(method="dense").astype(int), item=1)
    numbers.to_csv("clicks.csv", index=False)
    assert answer(run, *line)["users"] == 30


def test_titles_cannot_be_the_items(run, folder):
    ratings().to_csv("stars.csv", index=False)
    item = ratings().columns[1]
    said = refused(run, "complete", "stars.csv", "--titles", item)
    assert f"--titles {item} is the column of items" in said


def test_counts_that_dominate_are_noted(run, folder):
    user, item = np.divmod(np.arange(60), 6)
    frame = pd.DataFrame({"user": user, "item": item, "plays": 2 + np.arange(60) % 5})
    line = ("complete", "plays.csv", "--method", "implicit", "--lam", 3, "--no-verdict")
    for largest, noted in ((9, False), (5000, True)):
        frame.assign(plays=np.where(np.arange(60) == 3, largest, frame.plays)).to_csv(
            "plays.csv", index=False
        )
        status, _, err = run(*line)
        assert status == 0 and ("1250 times the median" in err) == noted


def test_advice_names_options_that_the_command_has(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [f"u{k % 7},i{3 * k % 11},{1 + k % 5}" for k in range(60)]
    Path("ratings.csv").write_text("\n".join(["user,item,rating", *rows]))
    Path("asked.csv").write_text("user,item\nu1,i1\n,i2\n")
    fit = ("complete", "ratings.csv", "--duplicates", "mean", "--lam", 3, "--no-verdict")
    assert run(*fit, "--model", "r.gramian")[0] == 0
    message = refused(run, "predict", "asked.csv", "--model", "r.gramian")
    assert "1 missing ids" in message and "--missing" not in message


def test_reports_ratings_of_unknown_items(run, folder):
    assert run("complete", "ratings.csv", "--lam", 5, "--no-verdict", "--model", "m")[0] == 0
    frame = pd.DataFrame(
        {"user": ["carol"] * 3, "item": ["film 1", "film x", "film y"], "rating": 4}
    )
    frame.to_csv("carol.csv", index=False)
    status, _, err = run("recommend", "--ratings", "carol.csv", "--model", "m")
    assert status == 0 and "2 of the 3 ratings of carol.csv" in err and "'film x', 'film y'" in err
    status, _, err = run("evaluate", "carol.csv", "--model", "m")
    assert status == 0 and "3 of the 3 ratings of carol.csv have a user or an item" in err
    assert "--top" in refused(run, "recommend", "alice", "--model", "m", "--top", 0)


def test_outputs_for_ratings_have_the_names_of_the_columns(run, folder):
    frame = ratings().rename(columns={"user": "customer", "item": "film", "rating": "stars"})
    frame.to_csv("stars.csv", index=False)
    line = ("complete", "stars.csv", "--columns", "customer,film,stars", "--lam", 5)
    assert run(*line, "--no-verdict", "--model", "m", "--out", "o.csv")[0] == 0
    assert list(pd.read_csv("o.csv")) == ["customer", "film", "stars", "fitted"]
    assert run("predict", "stars.csv", "--model", "m", "--out", "p.csv")[0] == 0
    assert list(pd.read_csv("p.csv")) == ["customer", "film", "prediction", "known"]


def test_a_model_of_clicks_is_evaluated_on_clicks(run, folder):
    frame = ratings()[["user", "item"]]
    frame.iloc[::2].to_csv("c.csv", index=False)
    assert run("complete", "c.csv", "--method", "implicit", "--no-verdict", "--model", "m")[0] == 0
    frame.iloc[1::2].to_csv("t.csv", index=False)
    facts = answer(run, "evaluate", "t.csv", "--model", "m", "-k", 3)
    assert facts["ratings"] == len(frame) // 2 and facts["ndcg"] > 0
    assert run("recommend", "--ratings", "t.csv", "--model", "m", "--top", 1)[0] == 0


def test_reports_many_ratings_of_zero(run, folder):
    wide = ratings().pivot(index="user", columns="item", values="rating")
    wide.iloc[:, :4].fillna(0).to_csv("wide.csv")
    said = run("complete", "wide.csv", "--wide", "--lam", 5, "--no-verdict")[2]
    zeros = int((wide.iloc[:, :4].fillna(0) == 0).to_numpy().sum())
    assert f"{zeros} of {4 * len(wide)} ratings are 0: if 0 stands for no rating" in said


def test_names_the_options_for_a_file_in_place_of_a_user(run, fitted):
    said = refused(run, "recommend", "points.csv", "--model", "ratings.gramian")
    assert "a file of users is given with --users" in said


def test_finds_the_header_of_clicks(run, folder):
    lines = ["customer,product", *(f"anna{k},hat{k % 7}" for k in range(20))]
    (folder / "clicks.csv").write_text("\n".join(lines))
    said = refused(run, "complete", "clicks.csv")
    assert "columns customer, product only" in said and "--method implicit" in said
    status, _, err = run("complete", "clicks.csv", "--method", "implicit", "--no-verdict")
    assert status == 0 and "header" not in err


def test_reports_far_ratings_and_short_lists(run, folder):
    frame = ratings()
    frame.loc[[2, 5], "rating"] = 99.0
    frame.to_csv("r.csv", index=False)
    line = ("complete", "r.csv", "--lam", 5, "--no-verdict")
    _, _, err = run(*line, "--model", "m")
    assert "the rating 99 is far from all others" in err
    _, _, err = run("recommend", "alice", "--model", "m", "--top", 20)
    assert "there are fewer than 20 items to recommend to alice" in err
    _, _, err = run("recommend", "alice", "--model", "m", "--top", 20, "--seen")
    assert "fewer than" not in err
    ratings().to_csv("r.csv", index=False)
    assert "is far from" not in run(*line)[2]


def test_two_values_are_judged_by_the_share_of_errors(run, folder):
    frame = ratings()
    likes = frame.assign(rating=np.where(frame["rating"] > 3, 1, -1))
    likes.to_csv("likes.csv", index=False)
    line = ("complete", "likes.csv", "--lam", 5)
    facts = answer(run, *line, "--method", "mmmf")
    assert facts["held_out"]["measure"] == "share of errors" and " %" in facts["verdict"]
    assert facts["held_out"]["after"] < 0.5
    _, _, err = run(*line, "--no-verdict")
    assert "the ratings have two values, -1 and 1: --method mmmf predicts" in " ".join(err.split())


def test_counts_of_zero_are_left_out(run, folder):
    ratings().assign(rating=lambda frame: frame["rating"] // 2 % 2).to_csv("c.csv", index=False)
    line = ("complete", "c.csv", "--method", "implicit", "--lam", 5, "--no-verdict")
    status, out, err = run(*line, "--json")
    assert status == 0 and "with a count of 0 left out" in err
    assert json.loads(out)["ratings"] == (ratings()["rating"] // 2 % 2 == 1).sum()


def test_columns_with_other_names_of_the_same_meaning_are_found(run, fitted):
    frame = ratings().rename(columns={"user": "userId", "item": "movieId", "rating": "stars"})
    frame.to_csv("other.csv", index=False)
    status, _, err = run("predict", "other.csv", "--model", "ratings.gramian", "--out", "p.csv")
    assert status == 0 and "userId, movieId of other.csv are treated as user, item" in err
    found = answer(run, "evaluate", "other.csv", "--model", "ratings.gramian")
    plain = answer(run, "evaluate", "ratings.csv", "--model", "ratings.gramian")
    assert found["rmse"] == plain["rmse"]
    said = refused(run, "recommend", "alice,bob", "--model", "ratings.gramian")
    assert said.endswith("separate users by blanks: alice bob")
