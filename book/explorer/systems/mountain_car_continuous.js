"use strict";
// The car in the valley with an engine of any strength, as in spaql/systems/mountain_car.py: Gymnasium's
// dynamics, in float32 from the first step on.

(globalThis.SPAQL_SYSTEMS ??= {}).MountainCarContinuous = (() => {
  const single = Math.fround;

  return {
    start: [-0.5, 0], // at the bottom, at rest
    decimals: 1, // of the return
    ending: "it arrived",

    push: ([position, speed], by) => [position, single(speed + 0.005 * by)],
    vary: (c, { mass = 1 }) => ({ ...c, power: c.power / mass }),

    seconds: () => 1 / 30, // a step has no duration of its own; this is the pace at which Gymnasium draws it

    words: (force) => (Math.abs(force) < 0.005 ? "no push" : force > 0 ? "push right" : "push left"),

    observe: (state) => state.map(single),

    // Apply a force between -1 and 1; return the next state, the reward and the end.
    step(c, [position, speed], action) {
      // Only a start is no float32: Gymnasium computes the first step in double precision.
      const round = single(position) === position && single(speed) === speed ? single : (value) => value;
      const force = single(action);
      const slope = 0.0025 * Math.cos(round(3 * position));
      const bounded = Math.min(c.max_action, Math.max(c.min_action, force));
      const push = bounded === force ? single(single(force * single(c.power)) - single(slope)) : bounded * c.power - slope;
      let faster = round(speed + round(push));
      faster = Math.min(round(c.max_speed), Math.max(round(-c.max_speed), faster));
      let next = round(position + faster);
      next = Math.min(round(c.max_position), Math.max(round(c.min_position), next));
      if (next === round(c.min_position) && faster < 0) faster = 0; // the wall stops it
      const over = next >= round(c.goal_position) && faster >= round(c.goal_velocity);
      return { state: [next, faster].map(single), reward: (over ? 100 : 0) - force * force * 0.1, over };
    },

    draw: (...drawn) => SPAQL_SYSTEMS.MountainCar.draw(...drawn), // it is the same valley
  };
})();
