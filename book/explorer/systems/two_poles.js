"use strict";
// The cart with two poles, as in spaql/systems/two_poles.py.

(globalThis.SPAQL_SYSTEMS ??= {}).TwoPoles = (() => {
  const clip = (value, reach) => Math.min(reach, Math.max(-reach, value));
  const [ROOM, TILT, FASTEST] = [2.4, Math.PI / 5, 4];

  return {
    start: [0, 0.03, 0.02, 0, 0, 0], // leaning a little
    decimals: 0, // of the return
    ending: "a pole fell",

    seconds: (constants) => constants.dt,

    push: ([x, long, short, speed, ...turning], by) => [x, long, short, speed + 0.05 * by, ...turning],

    words: (force) => (force > 0 ? "push right" : "push left"),

    observe: ([x, long, short, ...speeds]) =>
      [clip(x, ROOM), clip(long, TILT), clip(short, TILT), ...speeds.map((speed) => clip(speed, FASTEST))],

    // Push to the left (0) or to the right (1); return the next state, the reward and the end.
    step(c, [x, long, short, speed, ...turning], action) {
      const poles = [[c.mass_1, c.length_1, long], [c.mass_2, c.length_2, short]];
      let [force, mass] = [action === 1 ? c.force : -c.force, c.cart];
      poles.forEach(([weight, length, theta], i) => {
        const cos = Math.cos(theta);
        force += weight * Math.sin(theta) * (length * (turning[i] * turning[i]) - 0.75 * c.gravity * cos);
        mass += weight * (1 - 0.75 * (cos * cos));
      });
      const pull = force / mass;
      const spins = poles.map(([, length, theta]) =>
        (0.75 * (c.gravity * Math.sin(theta) - pull * Math.cos(theta))) / length);
      const next = [x + c.dt * speed, long + c.dt * turning[0], short + c.dt * turning[1], speed + c.dt * pull,
        turning[0] + c.dt * spins[0], turning[1] + c.dt * spins[1]];
      const over = Math.abs(next[0]) > ROOM || Math.abs(next[1]) > TILT || Math.abs(next[2]) > TILT;
      return { state: next, reward: 1, over };
    },

    draw(tools, { constants }, [x, long, short], force) {
      const poles = [[-14, long, constants.length_1], [14, short, constants.length_2]];
      SPAQL_SYSTEMS.CartPole.drawCart(tools, ROOM, x, poles, force);
    },
  };
})();
