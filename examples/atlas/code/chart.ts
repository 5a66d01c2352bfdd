// Draws one river as an SVG path. No library: the portal must load on a phone in a valley with one bar of signal.

export interface Point {
  at: Date;
  levelCm: number;
}

const WIDTH = 640;
const HEIGHT = 200;

export function path(points: Point[]): string {
  if (points.length < 2) return "";
  const first = points[0].at.getTime();
  const span = points[points.length - 1].at.getTime() - first || 1;
  const top = Math.max(...points.map((p) => p.levelCm));
  const bottom = Math.min(...points.map((p) => p.levelCm));
  const scale = top - bottom || 1;
  return points
    .map((p, i) => {
      const x = ((p.at.getTime() - first) / span) * WIDTH;
      const y = HEIGHT - ((p.levelCm - bottom) / scale) * HEIGHT;
      return `${i === 0 ? "M" : "L"}${x.toFixed(1)},${y.toFixed(1)}`;
    })
    .join(" ");
}

// Dispatchers see centimetres, whatever the browser says. See the complaint of 11 September.
export const unit = "cm";
