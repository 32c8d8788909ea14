"use strict";
// The car in the valley: Gymnasium's dynamics, with its float32 observations, as in spaql/systems/mountain_car.py.

(globalThis.SPAQL_SYSTEMS ??= {}).MountainCar = (() => {
  const between = (value, low, high) => Math.min(high, Math.max(low, value));
  const heightAt = (x) => Math.sin(3 * x) * 0.45 + 0.55; // what Gymnasium draws; the slope is the dynamics' cos(3x)

  return {
    start: [-0.5, 0], // at the bottom, at rest
    decimals: 0, // of the return
    ending: "it arrived",

    push: ([position, speed], by) => [position, speed + 0.005 * by],
    vary: (c, { mass = 1 }) => ({ ...c, force: c.force / mass }),

    seconds: () => 1 / 30, // a step has no duration of its own; this is the pace at which Gymnasium draws it

    words: (push) => (push === 0 ? "no push" : push > 0 ? "push right" : "push left"),

    observe: (state) => state.map(Math.fround),

    // Push to the left (0), not at all (1), or to the right (2); return the next state, the reward and the end.
    step(c, [position, speed], action) {
      let faster = speed + (action - 1) * c.force + Math.cos(3 * position) * -c.gravity;
      faster = between(faster, -c.max_speed, c.max_speed);
      const next = between(position + faster, c.min_position, c.max_position);
      if (next === c.min_position && faster < 0) faster = 0; // the wall stops it
      return { state: [next, faster], reward: -1, over: next >= c.goal_position && faster >= c.goal_velocity };
    },

    draw({ context, width, height, ink, mark, line, arrow }, system, [position], push) {
      const c = system.constants;
      const scale = width / (c.max_position - c.min_position);
      const across = (x) => (x - c.min_position) * scale;
      const up = (x) => height * (0.92 - 0.72 * heightAt(x));
      const parts = 100;
      const places = Array.from({ length: parts + 1 }, (_, i) =>
        c.min_position + ((c.max_position - c.min_position) * i) / parts);
      places.slice(1).forEach((x, i) => line(across(places[i]), up(places[i]), across(x), up(x), 2));
      context.strokeStyle = context.fillStyle = mark;
      const goal = [across(c.goal_position), up(c.goal_position)];
      line(goal[0], goal[1], goal[0], goal[1] - 50, 3);
      context.fillRect(goal[0] - 25, goal[1] - 50, 25, 16);
      context.strokeStyle = context.fillStyle = ink;
      context.beginPath();
      context.arc(across(position), up(position) - 12, 12, 0, 2 * Math.PI);
      context.fill();
      if (push) arrow(across(position), up(position) - 45, Math.sign(push));
    },
  };
})();
