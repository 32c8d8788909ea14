"""Further agents of the ablation and of the controls, of which only the end is kept."""

import dataclasses

import numpy as np
import pytest

from spaql.paper.audit.groups import MissingError, make_group
from spaql.paper.frames import finals
from spaql.paper.runs.algorithms import compute
from spaql.paper.runs.job import Job
from spaql.paper.runs.retrain import retrain
from spaql.paper.studies import further_of, make_jobs, parameters_of, study, study_of
from spaql.paper.tables.results import groups_frame

WHOLE = Job("SPAQL", "CartPole-v0", 20.0, 6, 3, seed=1, agent=0, fresh=20)


def brief(job):
    return dataclasses.replace(job, brief=True)


def test_of_a_brief_agent_the_end_and_the_samples_are_kept(caplog):
    whole, short = compute(WHOLE), compute(brief(WHOLE))
    assert len(whole.history) == 6
    assert len(short.history) == 1
    for name in ("rewards", "arms", "evaluations", "trainee_arms", "tau"):
        assert short.history[name] == whole.history[name][-1]
    for name in ("steps", "evaluation_steps"):
        assert short.history[name] == whole.history[name].sum()
    assert np.array_equal(short.fresh, whole.fresh)
    ends = finals([whole, short]).drop(columns=["wall", "fresh_deterministic"])  # which only TRPO has
    assert ends.iloc[0].tolist() == ends.iloc[1].tolist()
    assert groups_frame([whole, short]).iterations.tolist() == ["6"]
    assert retrain(brief(WHOLE), store=None).arms == short.history["arms"]
    assert not [said for said in caplog.records if said.name != "spaql.compiling"]


def test_a_job_that_is_not_brief_is_written_as_before():
    assert "brief" not in WHOLE.named()
    assert brief(WHOLE).identity() != WHOLE.identity()


def test_agents_stand_together_whatever_is_kept_of_them():
    whole = [compute(dataclasses.replace(WHOLE, agent=agent)) for agent in (0, 1)]
    short = [compute(brief(dataclasses.replace(WHOLE, agent=agent))) for agent in (2, 3)]
    group = make_group(short + whole)
    assert group.fresh.tolist() == [record.fresh[0] for record in whole + short]
    for name in ("early", "late", "progress"):
        with pytest.raises(MissingError, match="stored"):
            group.column(name)


def test_every_cell_of_the_ablation_and_the_controls_comes_to_as_many_agents_and_so_does_what_it_is_compared_with():
    jobs, own = study("further"), study("ablation") + study("controls")
    assert {study_of(job) for job in jobs} == {"further"}
    assert len(set(jobs)) == len(jobs)
    known = {name: [job for job in study(name) if job.algorithm != "Random"] for name in ("long", "xi")}
    text = known["long"] + [job for job in known["xi"] if job.system == "CartPole-v0" and job.xi == 0]
    places = {}
    for job in [*own, *text, *jobs]:
        cell = dataclasses.replace(job.group(), record=False, brief=False)
        places.setdefault(cell, set()).add(job.agent)
    assert len(places) == len({job.group() for job in own}) + 12
    assert all(found == set(range(parameters_of("further")["agents"])) for found in places.values())


def test_further_agents_are_the_published_ones_of_published_groups_alone():
    own = study("ablation")
    found = further_of(own)
    assert {job.group() for job in found} == {dataclasses.replace(job.group(), brief=True) for job in own}
    assert further_of(own[:3]) == []  # not a whole group
    assert further_of(study("ablation", seed=7)) == []
    assert further_of(make_jobs(["SPAQL"], ["CartPole-v0"], [20], 5, 10, 2)) == []
