// The same branch in two drawings of one tree, whose root lies elsewhere: by what it separates.

function sums(model, codes) {
  const found = [new Int32Array(model.n), new Int32Array(model.n)];
  for (let x = 0; x < model.n; x++) {
    for (let k = 0; k < 2; k++) {
      if (x < model.tips) found[k][x] = codes.get(model.names[x])[k];
      if (x < model.n - 1) found[k][model.parent[x]] ^= found[k][x];
    }
  }
  return found;
}

// For the branch above a node of one model the node of the other with the same split; null where there is none.
export function sameBranch(model, node, other) {
  const random = crypto.getRandomValues.bind(crypto);
  const codes = new Map(model.names.map((name) => [name, random(new Int32Array(2))]));
  const [a, b] = sums(model, codes), [c, d] = sums(other, codes);
  const whole = [c[other.root], d[other.root]];
  for (let x = 0; x < other.root; x++) {
    if (c[x] === a[node] && d[x] === b[node]) return x;
    if ((c[x] ^ whole[0]) === a[node] && (d[x] ^ whole[1]) === b[node]) return x;
  }
  return null;
}
