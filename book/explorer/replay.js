"use strict";
// SPAQL-R in the browser, with its defaults: spaql/spaqlr.py and replay.py, with the same draws in the same order.  The
// physics are those of systems/.

const spaqlReplay = (() => {
  const NARROWEST = 2 ** -20; // a cell must be wider than this share of all states seen for it to be cut
  const [GOES_ON, CUT_OFF, TERMINAL] = [0, 1, 2]; // how an episode stands after a transition

  // -------------------------------------------------------------------------------------------------------------------
  // Cells of states: a binary tree whose leaves hold an estimate for each action

  const newCell = (q, best = 0) => ({ q, best, visits: 0, halves: null, axis: 0, border: 0 });

  // The leaf that holds a state, looked for below a cell that holds it; a state on a border belongs to the upper half.
  function leafBelow(cell, x) {
    let found = cell;
    while (found.halves) found = found.halves[x[found.axis] >= found.border ? 1 : 0];
    return found;
  }

  function firstBest(q) {
    let best = 0;
    for (let a = 1; a < q.length; a += 1) if (q[a] > q[best]) best = a;
    return best;
  }

  // -------------------------------------------------------------------------------------------------------------------
  // An agent.  `system` has what explorer.py says of it; `random` gives uniform numbers, `start` states.

  function newAgent(system, { N, deleted = false }, random, start) {
    const physics = SPAQL_SYSTEMS[system.family];
    const { gamma, alpha, epsilon, decay, replays, visits, steps, reach, memory: size, actions, sine, bounds,
      slopes } = system.replay;
    const H = system.steps;
    const seen = [sine.map(() => Infinity), sine.map(() => -Infinity)]; // corners of the box of all states seen so far
    const root = newCell(actions.map(() => 0));
    const memory = [];
    const met = [0, 0]; // the lowest and the highest reward so far, and zero
    const agent = { algorithm: "SPAQL-R", best: { arms: actions.length }, iteration: 0, episode: 0, total: 0, history: [] };
    let taken = 0;

    function standard(observation) {
      return observation.map((value, i) => {
        if (sine[i] === -2) return 0;
        const seenAs = sine[i] >= 0 ? Math.atan2(observation[sine[i]], value) : value;
        const ends = bounds[i];
        const x = ends ? (seenAs - (ends[0] + ends[1]) / 2) / ((ends[1] - ends[0]) / 2)
          : 2 / (1 + Math.exp(Math.min(709, -2 * slopes[i] * seenAs))) - 1;
        return Math.min(1, Math.max(-1, x));
      });
    }

    agent.locate = (state) => leafBelow(root, standard(physics.observe(state)));

    // Count a visit to a cell, which is halved across its widest side when it has had enough.
    function countVisit(cell, x) {
      cell.visits += 1;
      x.forEach((value, i) => {
        seen[0][i] = Math.min(seen[0][i], value);
        seen[1][i] = Math.max(seen[1][i], value);
      });
      if (cell.visits < visits) return;
      const box = seen.map((corner) => [...corner]); // corners of the cell, as far as states were seen
      for (let above = root; above.halves;) {
        const upper = x[above.axis] >= above.border ? 1 : 0;
        box[1 - upper][above.axis] = above.border;
        above = above.halves[upper];
      }
      let [across, share] = [-1, NARROWEST];
      x.forEach((_, i) => {
        const [width, whole] = [box[1][i] - box[0][i], seen[1][i] - seen[0][i]];
        if (width > share * whole) [across, share] = [i, width / whole];
      });
      if (across < 0) return;
      cell.axis = across;
      cell.border = (box[0][across] + box[1][across]) / 2;
      cell.halves = [0, 1].map(() => newCell([...cell.q], cell.best));
      agent.best.arms += actions.length;
    }

    // Learn from the newest transition, and from some drawn from the memory.
    function learnAgain() {
      const newest = (taken - 1) % size;
      const kept = Math.min(taken, size);
      const [lowest, highest] = met.map((reward) => reach * reward);
      const after = (transition) => {
        transition.next = leafBelow(transition.next, transition.y);
        return transition.next;
      };
      for (let n = 0; n <= replays; n += 1) {
        const at = n === 0 ? newest : Math.floor(random() * kept);
        const from = memory[at];
        let [last, target, discount] = [at, from.reward, gamma];
        let cell = after(from);
        for (let m = 1; m < steps; m += 1) {
          const following = last + 1 < size ? last + 1 : 0;
          if (last === newest || memory[last].end !== GOES_ON || memory[following].action !== cell.best) break;
          last = following;
          target += discount * memory[last].reward;
          discount *= gamma;
          cell = after(memory[last]);
        }
        if (memory[last].end !== TERMINAL) target += discount * Math.min(highest, Math.max(lowest, cell.q[cell.best]));
        from.cell = leafBelow(from.cell, from.x);
        from.cell.q[from.action] += alpha * (target - from.cell.q[from.action]);
        from.cell.best = firstBest(from.cell.q);
      }
    }

    function train() {
      let state = start();
      let x = standard(physics.observe(state));
      let end = GOES_ON;
      for (let h = 1; end === GOES_ON; h += 1) {
        const cell = leafBelow(root, x);
        const share = Math.max(epsilon, Math.exp(-taken / decay)); // of random actions
        const a = random() < share ? Math.floor(random() * actions.length) : cell.best;
        const result = physics.step(system.constants, state, actions[a]);
        const y = standard(physics.observe(result.state));
        const reward = deleted ? 0 : result.reward;
        if (result.over) end = TERMINAL;
        else if (h === H) end = CUT_OFF;
        memory[taken % size] = { x, y, action: a, reward, end, cell, next: root };
        taken += 1;
        met[0] = Math.min(met[0], reward);
        met[1] = Math.max(met[1], reward);
        countVisit(cell, x);
        learnAgain();
        [state, x] = [result.state, y];
      }
    }

    function rollout() {
      let state = start();
      let total = 0;
      for (let h = 0; h < H; h += 1) {
        const result = physics.step(system.constants, state, actions[agent.locate(state).best]);
        total += result.reward;
        state = result.state;
        if (result.over) break;
      }
      return total;
    }

    // Play one episode: of training, or one of the N rollouts after it, which only report.
    agent.advance = () => {
      if (agent.episode === 0) train();
      else agent.total += rollout();
      agent.episode += 1;
      if (agent.episode <= N) return;
      const mean = agent.total / N;
      agent.history.push({ reward: mean, mean, arms: agent.best.arms });
      agent.iteration += 1;
      agent.episode = agent.total = 0;
    };

    // What the greedy policy does in a cell, in the action's unit.
    agent.central = (best) => (system.choices.length ? system.choices[actions[best]] : actions[best]);
    return agent;
  }

  return { newAgent };
})();
