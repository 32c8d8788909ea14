"""The explorer in a browser: its physics is Gymnasium's, its actions are the agents', and its controls work."""

import itertools
import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest

from spaql import AQL, SPAQL, SPAQLR, SPAQLTS
from spaql.paper.book import explorer
from spaql.paper.book.explorer import SMALLER, Shown, read_policies, write_policies
from spaql.paper.chapters.policies import Network, load_network, rate
from spaql.policies import Tree
from spaql.policies.play import run_policy
from spaql.policies.tree import LEAF, variables_of
from spaql.systems import begin, compiled_world, make_env, move, space_of, system_of
from tests.conftest import Opaque, in_browser

PAGE = Path(__file__).parents[2] / "book" / "explorer"
TRAINED = ["CartPole-v0", "Pendulum-v1", "spaql/PendulumDiscrete-v1"]
SYSTEMS = [*TRAINED, "CartPole-v1", "MountainCar-v0", "MountainCarContinuous-v0", "Acrobot-v1"]

CONTROLS = """
        const place = document.getElementById("spaql-explorer");
        const [system, policy, beside] = place.querySelectorAll("select");
        const choose = (select, value) => { select.value = value; select.dispatchEvent(new Event("input")); };
        const button = (text) => [...place.querySelectorAll("button")].find((b) => b.textContent === text);
        const scores = () => [...place.querySelectorAll(".score")].map((e) => e.textContent);
        const painted = (canvas) =>
            new Set(canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data).size;
"""  # the page's own, by name


@pytest.fixture(scope="module")
def agents():
    trained = {
        (system, algorithm.__name__): algorithm(system, xi=4, seed=1).learn(200, 10)
        for system in TRAINED
        for algorithm in (SPAQLTS, SPAQL)
    }
    others = [system for system in SYSTEMS if system not in TRAINED]  # interpreted, to compile less
    return trained | {
        (system, "SPAQLR"): SPAQLR(Opaque(make_env(system)), seed=1).learn(samples=500) for system in others
    }


@pytest.fixture(scope="module")
def small(agents):
    return agents["CartPole-v0", "SPAQLTS"].policy.tree(leaves=5, episodes=20)


@pytest.fixture(scope="module")
def folder(agents, small, tmp_path_factory):
    """A folder with the page and the policies of these agents, the last of which is a small tree."""
    folder = tmp_path_factory.mktemp("explorer")
    shutil.copytree(PAGE, folder, dirs_exist_ok=True)

    def rate_briefly(player, system):
        env = Opaque(make_env(system))  # interpreted, to compile less
        return run_policy(player, env, np.array([[0], [1]]), np.random.default_rng(0), record=True)

    shown = [Shown(system, name, agent.policy) for (system, name), agent in agents.items()]
    shown += [explorer.network_policy(*pair) for pair in explorer.NETWORKS]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(explorer, "rate", rate_briefly)
        write_policies([*shown, Shown("CartPole-v0", "SPAQL-TS", small, SMALLER)], folder / "policies.js")
    return folder


@pytest.fixture(scope="module")
def browse(browser):
    """A function that returns what a script in the page of a folder returns, after its promise is done."""

    def run(folder, script, data=None, address=""):
        page, errors = browser.new_page(), []
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto((folder / "explorer.html").as_uri() + address)
        # As text: Playwright would take seconds for so many numbers.
        given = "const given = JSON.parse(text);"
        result = page.evaluate(
            f"async (text) => JSON.stringify(await (async () => {{ {given} {script} }})())", json.dumps(data)
        )
        page.close()
        assert errors == []
        return json.loads(result)

    return run


def play_gymnasium(agent, system, seed):
    """An episode in Gymnasium under an agent: states, observations, actions and rewards."""
    env = make_env(system)
    observation, _ = env.reset(seed=seed)
    states, observations, actions, total, over = [np.array(env.unwrapped.state, float).tolist()], [], [], 0.0, False
    while not over:
        action, _ = agent.predict(observation, deterministic=True)
        observations.append(observation.tolist())
        actions.append(np.ravel(action)[0].item())
        observation, reward, terminated, truncated, _ = env.step(action)
        states.append(np.array(env.unwrapped.state, float).tolist())
        total += float(reward)
        over = terminated or truncated
    return {"states": states, "observations": observations, "actions": actions, "total": total}


@in_browser
def test_every_step_of_the_browser_is_gymnasiums_and_every_action_the_agents(browse, folder, agents):
    episodes = [
        play_gymnasium(agent, system, seed) | {"system": system, "policy": i}
        for i, ((system, _), agent) in enumerate(agents.items())
        for seed in (0, 1, 2)
    ]
    answers = browse(
        folder,
        """
        return given.map(({ system: id, policy: i, states, observations, actions }) => {
            const [system, policy] = [SPAQL_POLICIES.systems[id], SPAQL_POLICIES.policies[i]];
            return [actions.map((action, t) => spaqlExplorer.step(system, states[t], action)),
                observations.map((observation) => spaqlExplorer.act(system, policy, observation))];
        });
        """,
        episodes,
    )
    for expected, (steps, chosen) in zip(episodes, answers, strict=True):
        assert np.abs(np.subtract([step["state"] for step in steps], expected["states"][1:])).max() < 1e-6
        assert sum(step["reward"] for step in steps) == pytest.approx(expected["total"], abs=1e-6)
        assert chosen == expected["actions"]


@in_browser
def test_the_physics_is_the_kernels_everywhere(browse, folder):
    # Also where no episode of an agent gets to: at a wall, at a goal, after a fall.
    rng = np.random.default_rng(0)
    cases, expected = [], []
    for name in SYSTEMS:
        env = make_env(name)
        env.action_space.seed(0)
        system, constants = system_of(env), compiled_world(env, space_of(env)).model.constants
        low, high = np.transpose([variable.ends for variable in system.state]) * 1.2
        for values in rng.uniform(low, high, (500, len(low))):
            action = env.action_space.sample()
            state = np.empty(system.numbers)
            begin(constants, values, state)
            state[: len(values)] = values
            reward, over = move(constants, state, np.array([action], float).ravel())
            cases.append({"system": name, "state": values.tolist(), "action": np.ravel(action)[0].item()})
            expected.append((state[: len(values)], reward, bool(over)))
    answers = browse(
        folder,
        "return given.map((c) => spaqlExplorer.step(SPAQL_POLICIES.systems[c.system], c.state, c.action));",
        cases,
    )
    for case, (state, reward, over), answer in zip(cases, expected, answers, strict=True):
        assert answer["state"] == pytest.approx(state, abs=1e-9), case
        assert answer["reward"] == pytest.approx(reward, abs=1e-9), case
        assert answer["over"] == over, case
    for name in ("CartPole-v0", "MountainCar-v0", "MountainCarContinuous-v0", "Acrobot-v1"):
        ends = {over for case, (_, _, over) in zip(cases, expected, strict=True) if case["system"] == name}
        assert ends == {True, False}


@in_browser
def test_the_browser_acts_as_agents_and_networks_everywhere(browse, agents, folder):
    rng = np.random.default_rng(0)
    points = {}
    for system in SYSTEMS:
        low, high = np.transpose([variable.ends for variable in system_of(make_env(system)).observed])
        drawn = (low + high) / 2 + (high - low) / 2 * rng.normal(size=(2000, len(low)))
        points[system] = drawn.astype(np.float32).tolist()
    answers = browse(
        folder,
        """
        const { systems, policies } = SPAQL_POLICIES;
        return policies.map((p) => given[p.system].map((point) => spaqlExplorer.act(systems[p.system], p, point)));
        """,
        points,
    )
    players = [(system, agent) for (system, _), agent in agents.items()]
    players += [(pair[0], load_network(*pair)) for pair in explorer.NETWORKS]
    for (system, player), actions in zip(players, answers, strict=False):
        expected = player.predict(np.array(points[system]), deterministic=True)[0].ravel()
        if not isinstance(player, Network):
            assert actions == expected.tolist()
        elif player.low.size:
            assert np.abs(actions - expected).max() < 1e-4  # of a torque up to 2: the package computes in 32 bits
        else:
            assert np.mean(actions == expected) > 0.99  # but for ties within a rounding


@in_browser
def test_another_mass_or_length_is_the_packages(browse, folder):
    script = """const { family, constants } = SPAQL_POLICIES.systems[given];
        return SPAQL_SYSTEMS[family].vary(constants, { mass: 1.5, length: 0.8 });"""
    pendulum = {"m": 1.5, "l": 0.8}
    cart = {"masspole": 0.15, "length": 0.4, "total_mass": 1.15, "polemass_length": 0.06}
    for name, changed in {"Pendulum-v1": pendulum, "CartPole-v0": cart}.items():
        env = make_env(name)
        vars(env.unwrapped).update(changed)
        expected = compiled_world(env, space_of(env)).model.constants._asdict()
        assert browse(folder, script, name) == pytest.approx(expected), name


@in_browser
def test_every_system_is_drawn_played_and_driven(browse, folder):
    answer = browse(
        folder,
        CONTROLS
        + """
        const scene = () => [...place.querySelectorAll(".seen canvas")].map((e) => e.getAttribute("aria-label"));
        const seen = {};
        for (const id of Object.keys(SPAQL_POLICIES.systems)) {
            choose(system, id);
            choose(beside, "you");
            const drive = place.querySelector(".drive");
            const driven = ["ArrowLeft", "ArrowRight"].map((key) => {
                button("Back to start").click();
                drive.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
                for (let i = 0; i < 3; i++) button("One step").click();
                return scene()[1];
            });
            seen[id] = { score: scores()[0], label: scene()[0], driven,
                colours: ["canvas.map", ".seen canvas", "canvas.strip"].map((e) => painted(place.querySelector(e))) };
        }
        return seen;
        """,
    )
    assert set(answer) == set(SYSTEMS)
    for system, found in answer.items():
        assert found["score"].startswith(f"Step 3 of {make_env(system).spec.max_episode_steps}, return ")
        assert min(found["colours"]) > 2
        assert not re.search("undefined|NaN", found["label"])
        assert found["driven"][0] != found["driven"][1]


@in_browser
def test_mouse_touch_and_keyboard_work(browse, folder, small):
    answer = browse(
        folder,
        CONTROLS
        + """
        const seen = {};
        const readout = () => place.querySelector("[role=status]").textContent;
        const map = place.querySelector("canvas.map");
        const box = map.getBoundingClientRect();
        const point = (type, x, y, buttons) => map.dispatchEvent(new PointerEvent(type, { bubbles: true, buttons,
            clientX: box.left + x * box.width, clientY: box.top + y * box.height }));
        point("pointermove", 0.75, 0.25, 0);
        seen.pointed = readout();
        point("pointerdown", 0.55, 0.5, 1);
        seen.tapped = readout();
        map.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight", shiftKey: true }));
        seen.moved = readout();
        choose(system, "CartPole-v0"); // back to where the page begins
        choose(policy, "SPAQL-TS, made smaller");
        seen.tree = place.querySelector("pre").textContent;
        choose(place.querySelector("details.more label:last-of-type select"), "4"); // faster than real time
        map.dispatchEvent(new KeyboardEvent("keydown", { key: " " }));
        seen.playing = button("Pause") !== undefined;
        while (!button("Play")) await new Promise((go) => setTimeout(go, 50));
        seen.end = scores()[0];
        return seen;
        """,
    )
    assert answer["pointed"].startswith("Pointed at x 0.00 m")
    assert "θ 0.10 rad, θ̇ 1.50 rad/s: force push " in answer["pointed"]
    assert "θ 0.02 rad, θ̇ 0.00 rad/s" in answer["tapped"]
    assert "θ 0.06 rad" in answer["moved"]
    assert answer["playing"]
    start = np.array([[0.0, 0.0, 0.03, 0.0]])
    (steps,) = run_policy(small, make_env("CartPole-v0"), start, np.random.default_rng(0)).steps
    assert answer["end"] == f"Step {steps} of 200, return {steps}, {'the end' if steps == 200 else 'it fell'}"
    assert "theta_dot" in answer["tree"]


@in_browser
def test_two_policies_run_from_the_start_in_the_address_which_can_be_shared(browse, folder):
    run = (
        CONTROLS
        + """
        for (let i = 0; i < 200; i++) button("One step").click();
        const panels = place.querySelectorAll(".panel:not([hidden])").length;
        const totals = ["SPAQLTS", "SPAQL"].map((name) => spaqlExplorer.episode(SPAQL_POLICIES.systems["Pendulum-v1"],
            SPAQL_POLICIES.policies.find((p) => p.system === "Pendulum-v1" && p.algorithm === name), [2, 1]).total);
        return { panels, totals, scores: scores(), address: location.hash };
        """
    )
    asked = "#system=Pendulum-v1&policy=SPAQLTS%2C+as+learned&beside=SPAQL%2C+as+learned&start=2+1&speed=4"
    answer = browse(folder, run, address=asked)
    assert answer["panels"] == 2
    assert answer["scores"] == [
        f"Step 200 of 200, return {total:.1f}, the end".replace("-", "−") for total in answer["totals"]
    ]
    assert answer["scores"][0] != answer["scores"][1]
    assert browse(folder, run, address=answer["address"]) == answer


@in_browser
def test_agents_learn_in_the_browser_as_in_the_package(browse, tmp_path):
    cases = []
    for system, (name, algorithm) in itertools.product(
        ("Pendulum-v1", "CartPole-v0"), (("AQL", AQL), ("SPAQL", SPAQL), ("SPAQL-TS", SPAQLTS), ("SPAQL-R", SPAQLR))
    ):
        env = Opaque(make_env(system)) if algorithm is SPAQLR else system  # to compile less
        agent = algorithm(env, seed=7, **({} if algorithm is SPAQLR else {"xi": 4}))
        draws, starts, _ = np.random.SeedSequence(7).spawn(3)
        env_seed = np.random.SeedSequence(int(starts.generate_state(1)[0]))
        begin = system_of(agent.env).draw_starts(None, np.random.Generator(np.random.PCG64(env_seed)), 52)
        cases.append({
            "system": explorer.describe_learning(system), "algorithm": name, "starts": begin.tolist(),
            "random": np.random.default_rng(draws).random(60_000).tolist(),
            "history": agent.learn(12, 3).history[["evaluations", "arms"]].tolist(),
        })  # fmt: skip
    answers = browse(
        playground_page(tmp_path),
        """
        return given.map(({ system, algorithm, starts, random }) => {
            let [drawn, begun] = [0, 0];
            const [draw, begin] = [() => random[drawn++], () => starts[begun++]];
            const agent = algorithm === "SPAQL-R" ? spaqlReplay.newAgent(system, { N: 3 }, draw, begin)
                : spaqlLearning.newAgent(system, algorithm, { xi: 4, N: 3 }, draw, begin);
            while (agent.history.length < 12) agent.advance();
            return agent.history.map(({ mean, arms }) => [mean, arms]);
        });
        """,
        cases,
    )
    for case, answer in zip(cases, answers, strict=True):
        assert np.array(answer) == pytest.approx(np.array(case["history"]), abs=1e-6), case["algorithm"]


@in_browser
def test_a_link_trains_on_cartpole_with_rewards_deleted_where_only_a_learner_fails(browse, tmp_path):
    reported = browse(
        playground_page(tmp_path),
        """
        const said = () => [...document.querySelectorAll(".agents p")].map((p) => p.textContent);
        const reported = () => said().map((words) => Number(words.match(/reported (\\d+)/)?.[1] ?? 0));
        while (reported()[1] < 150 || Number(said()[3].match(/^\\d+/)) < 50) {
            await new Promise((go) => setTimeout(go, 100));
        }
        return [...document.querySelectorAll(".agents .name")].map((name, i) => [name.textContent, reported()[i]]);
        """,
        address="#playground?system=CartPole-v0&xi=20&N=5&deleted=1",
    )
    reported = dict(reported)
    assert list(reported) == ["AQL", "SPAQL", "SPAQL-TS", "SPAQL-R"]
    assert reported["SPAQL"] >= 150
    assert reported["SPAQL-R"] < 50


def playground_page(folder):
    """A copy of the page that holds the playground in the explorer's place."""
    shutil.copytree(PAGE, folder / "page")
    part = explorer.playground().replace("../_static/", "").removeprefix("```{raw} html\n").removesuffix("```\n")
    (folder / "page" / "explorer.html").write_text(f"<html><body>{part}</body></html>", encoding="utf-8")
    return folder / "page"


@pytest.fixture(scope="module")
def data():
    return read_policies()


def rebuilt(policy):
    """A tree of the page's data as Python plays it."""
    env = make_env(policy["system"])
    names = variables_of(env, space_of(env, angles=None if "sine" in policy else ()))
    feature, left, right = (np.array(policy[name]) for name in ("feature", "left", "right"))
    scale = 1.0 if names.box is None else float(names.box.high[0])
    low = np.zeros((len(feature), 1))
    low[feature == LEAF, 0] = np.array(policy["action"])[left[feature == LEAF]] / scale
    return Tree(feature, np.array(policy["threshold"]), left, right, low, names)


def test_the_books_data_are_what_they_say(data):
    assert list(data["systems"]) == [*explorer.PAPER, *explorer.OTHERS]
    assert data["systems"] == {system: explorer.describe_system(system) for system in data["systems"]}
    for policy in (p for p in data["policies"] if "layers" not in p):
        if policy["system"] in ("Pendulum-v1", "CartPole-v0"):
            rewards = rate(rebuilt(policy), policy["system"]).rewards
            assert rewards.mean() == pytest.approx(policy["reward"], abs=0.06)
    assert (PAGE / "policies.js").stat().st_size < 2e6
