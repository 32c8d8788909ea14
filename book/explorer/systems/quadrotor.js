"use strict";
// The planar quadrotor, as in spaql/systems/quadrotor.py.

(globalThis.SPAQL_SYSTEMS ??= {}).Quadrotor = (() => {
  const clip = (value, reach) => Math.min(reach, Math.max(-reach, value));
  const [ROOM, TILT, FASTEST] = [3, Math.PI / 2, 5];

  return {
    start: [1, -0.5, 0.2, 0, 0, 0], // aside, below and tilted
    decimals: 0, // of the return
    ending: "it is lost",

    seconds: (constants) => constants.dt,

    push: ([x, y, theta, ...speeds], by) => [x, y, theta, speeds[0] + 0.3 * by, ...speeds.slice(1)],

    words: (action) => ["both off", "left on", "right on", "both on"][action],
    keys: { ArrowLeft: 2, ArrowUp: 3, ArrowRight: 1 }, // the right rotor alone tilts it to the left
    rest: 0,

    observe: ([x, y, theta, ...speeds]) =>
      [clip(x, ROOM), clip(y, ROOM), clip(theta, TILT), ...speeds.map((speed) => clip(speed, FASTEST))],

    // Switch the rotors, and move by an Euler step; return the next state, the reward and the end.
    step(c, [x, y, theta, across, up, turning], action) {
      const [left, right] = [action % 2, Math.floor(action / 2)];
      const [lift, turn] = [c.thrust * (left + right), c.thrust * (right - left) * c.arm];
      const next = [x + c.dt * across, y + c.dt * up, theta + c.dt * turning,
        across - c.dt * lift * Math.sin(theta), up + c.dt * (lift * Math.cos(theta) - c.gravity),
        turning + (c.dt * turn) / c.inertia];
      const over = Math.abs(next[0]) > ROOM || Math.abs(next[1]) > ROOM || Math.abs(next[2]) > TILT;
      const away = next[0] * next[0] + next[1] * next[1];
      return { state: next, reward: over ? 0 : 1 - away / (2 * ROOM * ROOM), over };
    },

    draw({ context, width, height, mark, line }, system, [x, y, theta], action) {
      const scale = height / (2 * ROOM);
      const [cx, cy] = [width / 2 + x * scale, height / 2 - y * scale];
      context.setLineDash([4, 6]); // where it should be
      line(width / 2 - 14, height / 2, width / 2 + 14, height / 2, 1.5);
      line(width / 2, height / 2 - 14, width / 2, height / 2 + 14, 1.5);
      context.setLineDash([]);
      context.save();
      context.translate(cx, cy);
      context.rotate(-theta);
      line(-34, 0, 34, 0, 6);
      context.fillRect(-9, -7, 18, 14);
      [-34, 34].forEach((rotor, i) => {
        line(rotor, 0, rotor, -12, 4);
        line(rotor - 16, -12, rotor + 16, -12, 3);
        if (!((action >> i) & 1)) return; // bit 0 is the left one
        context.strokeStyle = mark;
        for (const jet of [-8, 0, 8]) line(rotor + jet, 10, rotor + jet, 26, 3);
        context.strokeStyle = context.fillStyle;
      });
      context.restore();
    },
  };
})();
