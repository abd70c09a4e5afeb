// The page of `maki serve`: watch a run, write with its model, look inside it.

// Every text in English and in Japanese. {name} stands for a value.
const kTexts = {
  views: ['Views', '表示'], watch: ['Watch', '見守る'], write: ['Write', '書く'], inside: ['Look inside', '中を見る'],
  run: ['Run', '学習'], otherLanguage: ['日本語', 'English'], checkpoint: ['Checkpoint', 'チェックポイント'], toBest: ['Best', '最良'],
  toLatest: ['Latest', '最新'], stepName: ['step {step}', 'ステップ {step}'],
  noRuns: ['There is no run here yet.', '学習の記録はまだありません。'],
  serverGone: ['The server does not answer; trying again.', 'サーバーが応答しません。再接続しています。'],
  cannotWrite: ['The model of this run does not continue texts.', 'この学習のモデルは文章の続きを書けません。'],
  cannotLook: ['This kind of model cannot be looked into.', 'この種類のモデルの中は表示できません。'],
  // Watch
  connecting: ['Connecting …', '接続しています…'], lost: ['Connection lost, trying again.', '接続が切れました。再接続しています。'],
  training: ['Training now', '学習中'], ended: ['This run has ended.', 'この学習は終わっています。'], step: ['steps', 'ステップ'],
  seconds: ['seconds', '秒'], linear: ['linear', '線形'], log: ['logarithmic', '対数'], across: ['Across', '横軸'],
  acrossScale: ['Scale across', '横の目盛り'], upScale: ['Scale up', '縦の目盛り'], smoothing: ['Smoothing', '平滑化'],
  progress: ['Step', 'ステップ'], ofSteps: ['{step} of {steps}', '{step} / {steps}'], atStep: ['At step', 'ステップ'],
  trainingLoss: ['Training loss', '訓練損失'], validationLoss: ['Validation loss', '検証損失'], bestLoss: ['Best', '最良'],
  speed: ['Tokens per second', '毎秒トークン数'], timeLeft: ['Time left', '残り時間'], bestPossible: ['best possible', '理論上の最良'],
  bits: ['Bits per character', '1 文字あたりのビット数'], loss: ['Loss, nats per token', '損失（1 トークンあたりのナット）'],
  textLoss: ['Loss, nats per text', '損失（1 テキストあたりのナット）'], samples: ['What the model writes', 'モデルが書く文章'],
  learningRate: ['Learning rate', '学習率'], raw: ['training, raw', '訓練'], counting: ['counting alone', '数え上げのみ'],
  gradientNorm: ['Gradient norm', '勾配のノルム'], smooth: ['training, smoothed', '訓練（平滑化）'], validation: ['validation', '検証'],
  // Write
  writeHint: ['The model continues your text (Ctrl+Enter). A token at the cursor shows its alternatives (Tab).',
    '文章の続きを書きます（Ctrl+Enter）。トークンを指すかカーソルを入れると、ほかの候補が表示されます（Tab で移動、Enter で選択）。'],
  yourText: ['Your text', '文章'], beginning: ['Once upon a time', 'むかしむかし'], alternatives: ['Alternatives', 'ほかの候補'],
  tokenIs: ['“{token}” had {percent}', '「{token}」の確率は {percent}'],
  firstToken: ['“{token}” begins the text', '「{token}」は先頭のトークンです'],
  instead: ['Continue with “{token}”, {percent}', '「{token}」（{percent}）から続ける'], continue: ['Continue', '続きを書く'],
  stop: ['Stop', '停止'], undo: ['Undo', '元に戻す'], score: ['Score my text', '文章を採点'],
  scored: ['{bits} bits per token, {count} tokens', '1 トークンあたり {bits} ビット、{count} トークン'],
  legend: ['Probability of a token', 'トークンの確率'], temperature: ['Temperature', '温度'], topP: ['Top-p', 'Top-p'],
  maxTokens: ['Tokens', 'トークン数'], seed: ['Seed', 'シード'], random: ['random', 'ランダム'], columns: ['Columns', '列'],
  compare: ['Several checkpoints beside each other', '複数のチェックポイントを並べる'], writeEach: ['Write in each', 'それぞれで書く'],
  compareHint: ['Each column continues your text as the model did at that step.', '各列は、そのステップのモデルが書いた続きです。'],
  // Look inside
  insideHint: ['What the model does with your text. Press a number to see what it was made from.',
    'モデルの動きです。数字を押すと、そのもとになった数字が表示されます。'],
  look: ['Look inside', '中を見る'], tokensTitle: ['1. Text becomes tokens', '1. 文章をトークンに分ける'], token: ['token', 'トークン'],
  tokensHint: ['Below each token stands its id. Choose one by click or arrow key.', 'トークンの下の数は ID です。クリックか矢印キーで選べます。'],
  vectorTitle: ['2. A token becomes a vector', '2. トークンをベクトルにする'], position: ['Its position', '位置'],
  vectorHint: ['The first {shown} of the {columns} numbers of “{token}”.',
    '「{token}」の {columns} 個の数のうち最初の {shown} 個です。'],
  learned: ['The vector learned for position {row} is added.', '位置 {row} について学習したベクトルを足します。'],
  sinusoidal: ['Sines and cosines of position {row} are added.', '位置 {row} の正弦と余弦を足します。'],
  rotary: ['Nothing is added; the position rotates queries and keys instead.', '何も足さず、位置に応じてクエリとキーを回転します。'],
  relative: ['Nothing is added here; scores depend on the distance instead.', '何も足さず、距離に応じてスコアを変えます。'],
  none: ['This model is not told positions.', 'このモデルに位置は与えられません。'],
  attentionTitle: ['3. Tokens look at tokens', '3. トークンがほかのトークンを見る'], layer: ['Layer', '層'], head: ['Head', 'ヘッド'],
  attentionHint: ['How much “{token}” takes from each token; darker is more.', '「{token}」が各トークンから受け取る割合です。濃いほど多くなります。'],
  noAttention: ['This model has no attention weights.', 'このモデルに注意の重みはありません。'],
  output: ['What “{token}” receives', '「{token}」が受け取るもの'], grid: ['All weights', 'すべての重み'],
  gridHint: ['A row looks at the columns. Arrow keys move, Enter explains.', '行が見る側、列が見られる側です。矢印キーで動き、Enter で説明を開きます。'],
  layersTitle: ['4. What each layer would predict', '4. 各層の予測'],
  layersHint: ['The likeliest next token if this layer were the last; 0 is the input.',
    'その層が最後だとしたときの次のトークンです。0 は入力です。'],
  softmaxTitle: ['5. Scores become probabilities', '5. スコアを確率にする'],
  softmaxHint: ['The likeliest next tokens. A low temperature sharpens the choice.', '次に来そうなトークンです。温度が低いほど選択は鋭くなります。'],
  why: ['Explanation', '説明'], back: ['Back', '戻る'], close: ['Close', '閉じる'], others: ['all others', 'その他すべて'],
  query: ['query', 'クエリ'], logit: ['logits', 'ロジット'], key: ['key', 'キー'], value: ['value', 'バリュー'], sum: ['sum', '合計'],
  whyId: ['“{token}” is number {id} in the vocabulary.', '「{token}」は語彙の {id} 番です。'],
  whyTable: ['Learned, not computed from the text: row {row}, column {column} of a table with a row for each {what}.',
    '文章から計算した数ではなく、学習した数です。{what}ごとに 1 行ある表の {row} 行 {column} 列です。'],
  whyWave: ['Computed from position {row} and column {column} alone.', '位置 {row} と列 {column} だけから計算します。'],
  whyWeight: ['How much of “{seen}” flows into “{looking}”: the share of its score among the scores of the row.',
    '「{seen}」が「{looking}」に流れ込む割合です。行のスコア全体に占めるこのスコアの割合です。'],
  whyHidden: ['“{looking}” does not see “{seen}”, so the weight is 0.', '「{looking}」に「{seen}」は見えないので、重みは 0 です。'],
  whyScore: ['How well what “{looking}” looks for (its query) fits what “{seen}” offers (its key).',
    '「{looking}」が探すもの（クエリ）に、「{seen}」が差し出すもの（キー）がどれだけ合うかを示します。'],
  whyOutput: ['The values of all tokens, mixed by their weights.', '全トークンのバリューを重みで混ぜたものです。'],
  whyVector: ['Number {column} of the {what} of “{token}”: a learned row times the normalized vector of the token.',
    '「{token}」の{what}の {column} 番の数です。学習した行と、トークンの正規化したベクトルとの積です。'],
  whyProbability: ['The share of this token among all; a temperature divides the logits first.',
    '全体に占める割合です。ロジットは先に温度で割ります。'],
  whyLayer: ['The vector of “{token}” after {layer} layers goes through the final normalization and the output layer.',
    '{layer} 層を通った「{token}」のベクトルを、最後の正規化と出力層に通します。'],
};

// === What all views use ===
// The address is #VIEW&name=value&…, so that what is shown can be kept and sent.
let view = 'watch', settings = new URLSearchParams(), saving = 0, lost = false, listed = '';
let run = null; // one of /api/runs, with the name of the chosen model added
function readAddress() {
  const parts = location.hash.slice(1).split('&');
  view = parts.find((part) => part in kViews) ?? 'watch';
  settings = new URLSearchParams(parts.filter((part) => part.includes('=')).join('&'));
}

// Browsers refuse hundreds of changes of the address in a row, as a slider would make them.
function set(name, value) {
  settings.set(name, value);
  clearTimeout(saving);
  saving = setTimeout(() => history.replaceState(null, '', `#${view}&${settings}`), 300);
}
const find = (id) => document.getElementById(id), all = (selector) => [...document.querySelectorAll(selector)];
const wait = (milliseconds) => new Promise((resolve) => { setTimeout(resolve, milliseconds); });
const setting = (name) => document.querySelector(`main [name=${name}]`).value;
const language = () => settings.get('lang') ?? (navigator.language.startsWith('ja') ? 'ja' : 'en');
const text = (name, values) => kTexts[name][Number(language() === 'ja')].replace(/\{(\w+)\}/g, (_, key) => values[key]);
const format = (value, digits = 4) => value.toLocaleString(language(), { maximumSignificantDigits: digits,
  notation: value && Math.abs(value) < 1e-4 ? 'scientific' : 'standard' });
const percent = (p) => (p > 0 && p < 1e-4 ? '< 0.01 %' : `${(100 * p).toFixed(p < 0.01 ? 2 : 1)} %`);
// A token as it is shown: blanks and ends of lines can be seen.
const visible = (token) => token.replaceAll(' ', '␣').replaceAll('\n', '↵').replaceAll('\t', '⇥') || '∅';

// `share`, from 0 to 1, is what the style sheet makes a length or a darkness of.
function el(tag, { share, ...properties } = {}, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  if (share !== undefined) element.style.setProperty('--share', share);
  element.append(...children);
  return element;
}

// Changes a text only if it is another one, because a screen reader reads every change.
function say(id, message) {
  if (find(id).textContent !== message) find(id).textContent = message;
  find(id).hidden = !message;
}

// GET, or POST of a body as JSON. A refusal is thrown with the sentence of the server.
async function request(path, { body, signal } = {}) {
  const headers = settings.has('token') ? { Authorization: `Bearer ${settings.get('token')}` } : {};
  if (body) headers['Content-Type'] = 'application/json';
  const post = body && { method: 'POST', body: JSON.stringify(body) };
  const response = await fetch(path, { headers, signal, ...post });
  if (response.ok) return response;
  const answer = await response.json().catch(() => null);
  throw new Error(answer?.error?.message ?? `${response.status} ${response.statusText}`);
}

// The server-sent events {event, id, data} of an answer. EventSource cannot send the token.
async function* events(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = '', event = {};
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    const lines = (rest + part.value).split('\n');
    rest = lines.pop();
    for (const line of lines) {
      const [, name, value] = /^(event|id|data): ?(.*)$/s.exec(line) ?? [];
      if (name) event[name] = value;
      if (line === '' && 'data' in event) { yield event; event = {}; }
    }
  }
}

// Arrow keys move the focus within a group.
function roving(group, selector) {
  group.addEventListener('keydown', (event) => {
    const items = [...group.querySelectorAll(selector)], at = items.indexOf(event.target);
    const move = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1, Home: -at, End: -at - 1 }[event.key];
    if (move === undefined || at < 0) return;
    event.preventDefault();
    items[(at + move + items.length) % items.length].focus();
  });
  return group;
}

// === Watch: a run while it trains ===
const kMostPoints = 1000, kMostDots = 60, kLeft = 56, kRight = 12, kTop = 8, kBottom = 24; // of a chart, pixels
const kRedraw = 500, kFirstPause = 500, kLongestPause = 30000, kMostSamples = 400; // milliseconds; samples
const kPace = 20; // measurements that the time left is computed from
const kKeys = { loss: 'loss', learningRate: 'learning_rate', gradientNorm: 'grad_norm', speed: 'tokens_per_second' };
let record = null, following = new AbortController(), redrawing = 0, drawn = 0;

// A curve keeps few points whatever the length of the run: when it is full, neighbours merge.
class Curve {
  points = [];
  perPoint = 1;
  add(step, seconds, value) {
    const point = { step, seconds, count: 1, low: value, high: value, mean: value }, last = this.points.at(-1);
    if (last?.count < this.perPoint) this.points[this.points.length - 1] = Curve.merged(last, point);
    else this.points.push(point);
    if (this.points.length < kMostPoints) return;
    this.perPoint *= 2;
    this.points = this.points.flatMap((p, i, all) => (i % 2 ? [] : all[i + 1] ? Curve.merged(p, all[i + 1]) : p));
  }
  static merged(a, b) {
    const count = a.count + b.count, mean = (a.mean * a.count + b.mean * b.count) / count;
    return { ...b, count, mean, low: Math.min(a.low, b.low), high: Math.max(a.high, b.high) };
  }
  // Exponential moving average in which the past keeps this weight at each measurement, without the bias of its start.
  smoothed(weight) {
    let total = 0, weights = 0;
    return this.points.map((point) => {
      const keep = weight ** point.count;
      [total, weights] = [keep * total + (1 - keep) * point.mean, keep * weights + (1 - keep)];
      return { ...point, mean: total / weights };
    });
  }
}

// Round numbers from `low` to `high`, about `most`; on a logarithmic scale 1, 2, 5, 10, … or powers of ten alone.
function ticks(low, high, logarithmic, most) {
  if (logarithmic && high / low > 5) {
    const digits = high / low > 500 ? [1] : [1, 2, 5];
    const every = Array.from({ length: 40 }, (_, i) => digits.map((digit) => digit * 10 ** (i - 20))).flat();
    return every.filter((value) => value >= low && value <= high);
  }
  const rough = (high - low) / most, power = 10 ** Math.floor(Math.log10(rough));
  const size = power * [1, 2, 5, 10].find((digit) => digit * power >= rough), first = Math.ceil(low / size);
  return Array.from({ length: Math.floor(high / size + 1e-9) - first + 1 }, (_, i) => (first + i) * size);
}
function scale(low, high, logarithmic, from, to) {
  const map = logarithmic ? Math.log : (value) => value;
  return (value) => from + ((map(value) - map(low)) / (map(high) - map(low) || 1)) * (to - from);
}

// Draws `lines` [{name, points, kind: 'band'|'dots'|undefined}] and `levels` [{name, value}]; names are classes.
function drawChart(box, { title, lines, levels = [], across, logAcross, logUp }) {
  const make = (tag) => document.createElementNS('http://www.w3.org/2000/svg', tag), svg = make('svg');
  const put = (tag, attributes, content = '') => {
    const element = svg.appendChild(make(tag));
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.textContent = content;
  };
  box.replaceChildren(el('h3', {}, title), svg);
  const fits = (point) => (!logAcross || point[across] > 0) && (!logUp || point.low > 0);
  const shown = lines.map((line) => ({ ...line, points: line.points.filter(fits) }));
  const points = shown.flatMap((line) => line.points), [width, height] = [box.clientWidth, box.clientHeight - 32];
  if (!points.length || width < 100) return;
  const ys = shown.flatMap((line) => line.points.flatMap((p) => (line.kind === 'band' ? [p.low, p.high] : p.mean)))
    .concat(levels.map(({ value }) => value)), xs = points.map((point) => point[across]);
  const low = Math.min(...ys), high = Math.max(...ys, low + Math.abs(low) * 1e-3 + 1e-9);
  const first = Math.min(...xs), last = Math.max(...xs), right = width - kRight;
  const x = scale(first, last, logAcross, kLeft, right), y = scale(low, high, logUp, height - kBottom, kTop);
  const level = (name, value) => put('line', { class: name, x1: kLeft, x2: right, y1: y(value), y2: y(value) });
  const places = (some, key) => some.map((p) => `${x(p[across]).toFixed(1)},${y(p[key]).toFixed(1)}`);
  Object.assign(svg, { role: 'img', ariaLabel: `${title}: ${format(points.at(-1).mean)}` });
  for (const value of ticks(low, high, logUp, height / 40)) {
    level('grid', value);
    put('text', { x: kLeft - 8, y: y(value) + 4, 'text-anchor': 'end' }, format(value, 3));
  }
  for (const value of ticks(first, last, logAcross, width / 90))
    put('text', { x: Math.min(x(value), width - 20), y: height - 6, 'text-anchor': 'middle' }, format(value, 3));
  for (const { name, kind, points: own } of shown) {
    const corners = kind === 'band' ? places(own, 'high').concat(places(own, 'low').reverse()) : places(own, 'mean');
    put(kind === 'band' ? 'polygon' : 'polyline', { class: name, points: corners.join(' ') });
    if (kind !== 'dots' || own.length > kMostDots) continue;
    for (const p of own) put('circle', { r: 3, cx: x(p[across]), cy: y(p.mean) });
  }
  for (const { name, value } of levels) level(name, value);
}
const emptyRecord = () => ({ state: 'connecting', cursor: 0, start: {}, losses: {}, samples: [], pace: [],
  curves: Object.fromEntries([...Object.keys(kKeys), 'validation'].map((name) => [name, new Curve()])) });
function follow() {
  record = emptyRecord();
  find('report').shadowRoot?.replaceChildren();
  listen();
}

// Events come from a cursor, so that a lost connection loses none. Hidden pages have none: a browser allows six in all.
async function listen() {
  following.abort();
  const { signal } = following = new AbortController(), query = `run=${encodeURIComponent(run?.name)}`;
  if (!run || document.hidden) return;
  if (!find('report').shadowRoot?.innerHTML) showReport(query, signal);
  for (let pause = kFirstPause; !signal.aborted; pause = Math.min(2 * pause, kLongestPause)) {
    try {
      for await (const event of events(await request(`/api/events?${query}&after=${record.cursor}`, { signal }))) {
        if (signal.aborted) return;
        take(event);
        [record.state, pause] = ['open', kFirstPause];
        redrawSoon();
      }
    } catch { /* tried again after the pause */ }
    if (signal.aborted) return;
    record.state = 'lost';
    redrawSoon();
    await wait(pause);
  }
}
function take({ event, id, data }) {
  const line = JSON.parse(data);
  if (event === 'reset') record = { ...emptyRecord(), start: record.start };
  if (event === 'start') record.start = line;
  if (id) record.cursor = Number(id);
  const { curves, losses, samples, pace } = record;
  if (line.kind === 'counting') record.counting = line;
  if (line.kind === 'train') {
    for (const [name, key] of Object.entries(kKeys)) curves[name].add(line.step, line.elapsed_seconds, line[key]);
    record.pace = [...pace.slice(1 - kPace), line];
  } else if (line.kind === 'eval' && line.val_loss !== undefined) {
    [record.evaluation, losses[line.step]] = [line, line.sampled_val_loss ?? line.val_loss]; // over the same text
    curves.validation.add(line.step, pace.at(-1)?.elapsed_seconds ?? 0, losses[line.step]);
  } else if (line.kind === 'sample' && samples.push(line) > kMostSamples) {
    record.samples = samples.filter((_, i) => i % 2 === 0 || i === samples.length - 1);
  }
}

// At most two redraws per second, and none of what is not seen.
function redrawSoon() {
  redrawing ||= setTimeout(() => {
    [redrawing, drawn] = [0, Date.now()];
    if (!document.hidden && (view === 'watch' || (view === 'inside' && !answer))) draw();
  }, Math.max(0, drawn + kRedraw - Date.now()));
}

// A report has its own style sheet and stays apart from the page in a shadow root.
async function showReport(query, signal) {
  const response = await request(`/api/report?${query}&lang=${language()}`, { signal }).catch(() => null);
  if (response?.status !== 200) return;
  const { html, style, language: lang } = await response.json(), box = find('report'), sheet = new CSSStyleSheet();
  sheet.replaceSync(style ?? '');
  Object.assign(box.shadowRoot ?? box.attachShadow({ mode: 'open' }), { adoptedStyleSheets: [sheet], innerHTML: html });
  box.lang = lang;
}
function facts() {
  const { counting, evaluation, losses, pace } = record, [from, now] = [pace[0], pace.at(-1)];
  const steps = run.max_steps, factor = counting && counting.nats_per_character / counting.val_loss;
  const rows = { progress: text('ofSteps', { step: format(now?.step ?? run.step ?? 0, 9), steps: format(steps, 9) }) };
  if (now) rows.trainingLoss = format(now.loss);
  if (evaluation) rows.validationLoss = format(evaluation.val_loss);
  if (run.best in losses) rows.bestLoss = format(losses[run.best]);
  if (evaluation && factor) rows.bits = format((evaluation.val_loss * factor) / Math.LN2, 3);
  if (now) rows.speed = format(now.tokens_per_second, 3);
  if (run.running && now?.step > from?.step) {
    const left = ((now.elapsed_seconds - from.elapsed_seconds) / (now.step - from.step)) * (steps - now.step);
    const parts = [left / 3600, (left / 60) % 60, left % 60].map((part) => Math.floor(Math.max(part, 0)));
    rows.timeLeft = parts.map((part) => String(part).padStart(2, '0')).join(':');
  }
  return Object.entries(rows).map(([name, value]) => el('div', {}, el('dt', {}, text(name)), el('dd', {}, value)));
}
function drawSamples() {
  const { samples } = record, slider = find('sample'), max = samples.length - 1;
  if ((find('samples').hidden = max < 0)) return;
  const newest = slider.value === slider.max; // stays chosen
  Object.assign(slider, { max, value: newest ? max : slider.value });
  slider.nextElementSibling.value = format(samples[slider.value].step, 9);
  say('sample-text', samples[slider.value].text);
}
function drawWatch() {
  const { curves, counting, start, state } = record, weight = Number(setting('smoothing'));
  say('connection', text(state !== 'open' ? state : run.running ? 'training' : 'ended'));
  find('facts').replaceChildren(...facts());
  const draw = (name, more) => drawChart(find(name), { across: setting('x'), logAcross: setting('xscale') === 'log',
    title: text(name === 'loss' && run.loss_per_text ? 'textLoss' : name), lines: lines(curves[name]), ...more });
  const lines = (curve) => [{ name: 'raw', kind: 'band', points: curve.points },
    { name: 'smooth', points: curve.smoothed(weight) }];
  const losses = [...lines(curves.loss), { name: 'validation', kind: 'dots', points: curves.validation.points }];
  const levels = [{ name: 'counting', value: counting?.val_loss },
    { name: 'bestPossible', value: start.best_possible_loss }].filter(({ value }) => value);
  draw('loss', { lines: losses, levels, logUp: setting('yscale') === 'log' });
  find('key').replaceChildren(...[...losses, ...levels].map(({ name }) => el('li', { className: name }, text(name))));
  draw('learningRate', { lines: [{ name: 'smooth', points: curves.learningRate.points }] });
  for (const name of ['gradientNorm', 'speed']) draw(name);
  drawSamples();
}

// === Write: a text that the model continues ===
const kBounds = [0.5, 0.2, 0.05, 0.01, 0.001, 0]; // the lowest probability of each colour, classes p0 to p5
const kMostUndo = 100, kPopupStays = 300; // steps, milliseconds
const area = find('text'), coloured = find('coloured'), popup = find('alternatives');
let tokens = [], old = '', writer = '', undos = [], work = null, hiding = 0; // writer: the run of the text

// The tokens {start, end, logprob, top} that are `known`, and those of a part of an answer that begins at `start`, after
// `shown` characters of the answer. JavaScript counts UTF-16 units. The tokens of one character become one, which is
// empty as long as others follow.
function tokensOf({ text: written, logprobs, shown = 0 }, start, known = []) {
  if (!logprobs?.tokens.length) return known;
  const units = [start], { text_offset: offsets, token_logprobs: chances, top_logprobs: tops } = logprobs;
  for (const character of written) units.push(units.at(-1) + character.length);
  const place = (i) => (i ? units[offsets[i] - shown] ?? units.at(-1) : start);
  const top = (i) => Object.entries(tops[i] ?? {}).sort(([, a], [, b]) => b - a)
    .map(([name, chance]) => [name, chance, logprobs.top_not_text[i]?.includes(name)]); // true: cannot be written
  return chances.reduce((before, chance, i) => {
    const token = { start: place(i), end: place(i + 1), logprob: chance, top: top(i) }, last = before.at(-1);
    if (last?.start !== token.start || last.end !== token.start) return [...before, token];
    const logprob = last.logprob === null ? null : last.logprob + chance; // of all tokens of the character
    return [...before.slice(0, -1), { ...token, logprob, top: [] }];
  }, known);
}
function asked(model, more) {
  const number = (name) => Number(setting(name)), seed = setting('seed') && { seed: number('seed') };
  return { body: { model, prompt: old, logprobs: 5, temperature: number('temperature'), top_p: number('top_p'),
    max_tokens: number('max_tokens'), ...seed, ...more } };
}
async function* complete(model, signal, written = '', known = []) {
  const response = await request('/v1/completions', { ...asked(model, { stream: true }), signal });
  let shown = 0;
  for await (const { data } of events(response)) {
    if (data === '[DONE]' || signal.aborted) return;
    const { error, choices } = JSON.parse(data);
    if (error) throw new Error(error.message);
    for (const choice of choices) {
      [known, shown] = [tokensOf({ ...choice, shown }, written.length, known), shown + [...choice.text].length];
      yield [written += choice.text, known];
    }
  }
}
function mark(written, { logprob }) {
  const p = Math.exp(logprob), className = `token p${kBounds.findIndex((bound) => p >= bound)}`;
  return el('span', logprob === null ? { className: 'token' } : { className, title: percent(p) }, written);
}
function pieces(written, known) {
  let at = 0;
  const piece = (token) => [written.slice(at, token.start), mark(written.slice(token.start, at = token.end), token)];
  return [...known.flatMap(piece), written.slice(at)];
}
function setText(written, known) {
  if (area.value !== written) area.value = written;
  [old, tokens, writer] = [written, known, run?.name];
  say('scored', '');
  coloured.replaceChildren(...pieces(written, known), '\n');
}
const remember = () => { undos = [...undos, [old, tokens]].slice(-kMostUndo); };
const stop = () => work?.abort();
const undo = () => { stop(); if (undos.length) setText(...undos.pop()); showAlternatives(-1); drawButtons(); };

// Does something until it is done or stopped, and stops what was being done before.
async function begin(task) {
  if (!run?.can_generate) return;
  stop();
  const { signal } = work = new AbortController();
  say('problem', '');
  showAlternatives(-1);
  drawButtons();
  await task(signal).catch((error) => { if (!signal.aborted) say('problem', error.message); });
  if (work?.signal === signal) work = null;
  drawButtons();
}
const continueText = () => begin(async (signal) => {
  remember();
  const whole = tokens.filter(({ start, end }) => start < end); // a text that was stopped may end within a character
  for await (const part of complete(run.model, signal, old, whole)) setText(...part);
});
const score = () => begin(async (signal) => {
  const response = await request('/v1/completions', { ...asked(run.model, { max_tokens: 0, echo: true }), signal });
  const [choice] = (await response.json()).choices;
  remember();
  setText(choice.text, tokensOf(choice, 0));
  const known = choice.logprobs.token_logprobs.filter((chance) => chance !== null), count = known.length;
  say('scored', count ? text('scored', { bits: format(-total(known) / Math.LN2 / count, 3), count }) : '');
});
const compare = () => begin((signal) => Promise.all(all('#columns > div').map(async ({ children: [slider, , box] }) => {
  const begun = el('span', { className: 'hint' }, [...old].slice(-80).join(''));
  box.replaceChildren(begun);
  for await (const part of complete(`${run.name}@${run.checkpoints[slider.value]}`, signal))
    box.replaceChildren(begun, ...pieces(...part));
})));
function choose(token, other, logprob) {
  remember();
  const start = old.slice(0, token.start), chosen = { ...token, end: token.start + other.length, logprob };
  setText(start + other, [...tokens.filter(({ end }) => end <= token.start), chosen]);
  area.focus();
  continueText();
}
function showAlternatives(index) {
  clearTimeout(hiding);
  const token = tokens[index], span = coloured.children[index];
  if ((popup.hidden = !token)) return;
  const said = (name, written, chance) => text(name, { token: visible(written), percent: percent(Math.exp(chance)) });
  const button = ([other, logprob, disabled]) => el('button', { ariaLabel: said('instead', other, logprob),
    share: Math.exp(logprob), disabled, onclick: () => choose(token, other, logprob) },
  el('span', {}, visible(other)), el('span', {}, percent(Math.exp(logprob))));
  const title = said(token.logprob === null ? 'firstToken' : 'tokenIs', span.textContent, token.logprob);
  popup.replaceChildren(el('p', {}, title), ...token.top.map(button));
  popup.style.left = `${Math.max(0, Math.min(span.offsetLeft, area.clientWidth - popup.offsetWidth))}px`;
  popup.style.top = `${span.offsetTop + span.offsetHeight + 2}px`;
}
function hideSoon() {
  clearTimeout(hiding);
  hiding = setTimeout(() => { if (!popup.matches(':hover, :focus-within')) showAlternatives(-1); }, kPopupStays);
}
function drawButtons() {
  for (const name of ['continue', 'score', 'compare']) find(name).disabled = Boolean(work) || !run?.can_generate;
  [find('stop').disabled, find('undo').disabled] = [!work, !undos.length];
}
function drawColumns() {
  const box = find('columns'), count = Number(setting('columns')), max = run.checkpoints.length - 1;
  const column = (_, i) => el('div', {},
    el('input', { type: 'range', max, value: Math.round((i * max) / (count - 1)), oninput: drawColumns }),
    el('output'), el('p', { className: 'prose' }));
  if (box.children.length !== count) box.replaceChildren(...Array.from({ length: count }, column));
  for (const { children: [slider, output] } of box.children) {
    slider.max = max;
    output.value = slider.ariaLabel = text('stepName', { step: run.checkpoints[slider.value] ?? '–' });
  }
}
function drawWrite() {
  if (!run.can_generate) say('problem', text('cannotWrite'));
  const range = (low, i) => (i ? `${100 * low}–${100 * kBounds[i - 1]} %` : `≥ ${100 * low} %`);
  find('legend').replaceChildren(...kBounds.map((low, i) => el('li', { className: `p${i}` }, range(low, i))));
  drawColumns();
  drawButtons();
}
area.oninput = () => { // what comes after a change has to be predicted again
  stop();
  remember();
  let same = 0;
  while (same < old.length && old[same] === area.value[same]) ++same;
  setText(area.value, tokens.filter(({ end }) => end <= same));
  drawButtons();
};
area.onpointermove = ({ clientX, clientY }) => {
  const under = document.elementsFromPoint(clientX, clientY).find((element) => element.matches('#coloured .token'));
  if (under && !work) showAlternatives([...coloured.children].indexOf(under));
  else hideSoon();
};
document.addEventListener('selectionchange', () => {
  const { selectionStart: at, selectionEnd } = area;
  if (document.activeElement !== area || work) return;
  showAlternatives(at === selectionEnd ? tokens.findIndex(({ start, end }) => start <= at && at < end) : -1);
});
find('document').onkeydown = (event) => {
  const does = { Enter: continueText, z: undo }[(event.ctrlKey || event.metaKey) && event.key];
  if (event.key === 'Escape') { area.focus(); showAlternatives(-1); }
  if (does) { event.preventDefault(); does(); }
};
area.onpointerleave = popup.onpointerleave = hideSoon;
popup.addEventListener('focusout', hideSoon);
roving(popup, 'button');
for (const [name, does] of Object.entries({ continue: continueText, stop, undo, score, compare }))
  find(name).onclick = does;

// === Look inside: each number leads to the numbers it was made from ===
const kAskAfter = 150, kGrid = 320, kGridColour = '#3f7fc4'; // milliseconds without a change; pixels; on any paper
let answer = null, question = '', askedAt = null, asking = new AbortController(), timer = 0;
let chosen = Infinity, cell = [0, 0]; // a token; in the grid, the token that looks and the token that is seen
let trail = [], origin = null; // explanations, the newest last; what had the focus before them
const token = (i) => visible(answer.tokens[i]);
const paragraph = (name, values) => el('p', {}, text(name, values));
const formula = (...parts) => el('p', { className: 'formula' }, ...parts);
const total = (values) => values.reduce((sum, value) => sum + value, 0);
const number = (value, why, shown = format(value, 3), more = {}) => el('button', {
  className: 'number plain', title: String(value), onclick: () => showTrail([...trail, why]), ...more }, shown);
function table(heads, rows) {
  const line = (tag, cells) => el('tr', {}, ...cells.map((content) => el(tag, {}, content)));
  return el('table', {}, el('thead', {}, line('th', heads)), el('tbody', {}, ...rows.map((row) => line('td', row))));
}
function showTrail(explanations) {
  const panel = find('why'), leave = (name, rest) => el('button', { onclick: () => showTrail(rest) }, text(name));
  if (!trail.length) origin = document.activeElement;
  trail = explanations;
  if ((panel.hidden = !trail.length)) return origin.focus();
  panel.replaceChildren(leave('back', trail.slice(0, -1)), ' ', leave('close', []), ...trail.at(-1)());
  return panel.focus();
}

// What a number was made from: each function makes the content of the panel.
const whyWeight = (q, k) => () => {
  const { scores, weights, linear } = answer.attention, said = { looking: token(q), seen: token(k) };
  if (weights[q][k] === 0) return [paragraph('whyHidden', said)];
  const [power, name] = linear ? [(x) => x, ''] : [Math.exp, 'exp'];
  const seen = [...weights[q].keys()].filter((j) => weights[q][j] > 0);
  const score = (j) => number(scores[q][j], whyScore(q, j)), sum = format(total(seen.map((j) => power(scores[q][j]))));
  return [paragraph('whyWeight', said), formula(`${name}(`, score(k), `) / ${sum} = ${format(weights[q][k])}`),
    table([text('token'), 'score', `${name}(score)`],
      [...seen.map((j) => [token(j), score(j), format(power(scores[q][j]))]), [text('sum'), '', sum]])];
};
const whyScore = (q, k) => () => {
  const { query, key, scale: factor, scores } = answer.attention;
  const products = query[q].map((x, i) => x * key[k][i]), sum = format(total(products));
  const row = (product, i) => [number(query[q][i], whyVector('query', q, i)), number(key[k][i], whyVector('key', k, i)),
    format(product, 3)];
  return [paragraph('whyScore', { looking: token(q), seen: token(k) }),
    formula(`Σ q·k × scale = ${sum} × ${format(factor)} = ${format(scores[q][k])}`),
    table(['q', 'k', 'q × k'], [...products.map(row), [text('sum'), '', sum]])];
};
const whyOutput = (q, column) => () => {
  const { value, weights, output } = answer.attention, seen = [...weights[q].keys()].filter((j) => weights[q][j] > 0);
  const row = (j) => [token(j), number(weights[q][j], whyWeight(q, j)),
    number(value[j][column], whyVector('value', j, column)), format(weights[q][j] * value[j][column], 3)];
  return [paragraph('whyOutput'), formula(`Σ weight × value = ${format(output[q][column])}`),
    table([text('token'), 'weight', 'value', 'weight × value'], seen.map(row))];
};
const whyVector = (what, i, column) => () =>
  [paragraph('whyVector', { what: text(what), token: token(i), column }), formula('w · norm(x)')];
const whyLogit = ({ id }) => whyVector('logit', answer.ids.length - 1, id);
const whyProbability = (i) => () => {
  const { top } = answer.logits, t = setting('softmax'), max = top[0].logit, whole = 1 / top[0].probability;
  const powers = top.map((one) => Math.exp((one.logit - max) / t)), logit = (one) => number(one.logit, whyLogit(one));
  const below = `− ${format(max)}) / ${t})`, rest = [[text('others'), '', format(Math.max(whole - total(powers), 0))]];
  return [paragraph('whyProbability'),
    formula('exp((', logit(top[i]), `${below} / ${format(whole)} = ${format(top[i].probability)}`),
    table([text('token'), 'logit', `exp((logit ${below}`], [...top.map((one, j) => [visible(one.token), logit(one),
      format(powers[j])]), ...rest, [text('sum'), '', format(whole)]])];
};
const whyLayer = ({ layer, top }, i) => () =>
  [paragraph('whyLayer', { layer, token: token(i) }), formula('softmax(W · norm(x))'), table([text('token'), 'id', '%'],
    top[i].map((other) => [visible(other.token), other.id, percent(other.probability)]))];

// A button for each token, which chooses it, and below it a number.
function chips(step, below, share) {
  const pick = (i) => { chosen = i; drawSteps(); find(step).querySelector('[aria-pressed=true]').focus(); };
  const chip = (i) => el('button', { className: 'chip', ariaPressed: String(i === chosen), share: share(i),
    tabIndex: i === chosen ? 0 : -1, onclick: () => pick(i), onfocus: () => { if (i !== chosen) pick(i); } }, token(i));
  const made = answer.ids.map((_, i) => el('div', {}, chip(i), below(i)));
  return roving(el('div', { className: 'chips' }, ...made), '.chip');
}
function cells(values, why) {
  const most = Math.max(...values.map(Math.abs)) || 1;
  return el('div', { className: 'cells' }, ...values.map((value, column) => number(value, why(column), format(value, 2),
    { className: value < 0 ? 'number negative' : 'number', share: Math.abs(value) / most })));
}
function drawTokens() {
  const why = (i) => () => [paragraph('whyId', { token: token(i), id: answer.ids[i] })];
  const id = (i) => number(answer.ids[i], why(i), String(answer.ids[i]));
  return [paragraph('tokensHint'), chips('tokens', id, () => 0)];
}
function drawVector() {
  const { embedding: { values, columns }, position: { kind, values: places }, ids } = answer, row = chosen;
  const learned = (what, at) => (column) => () => [paragraph('whyTable', { what: text(what), row: at, column })];
  const wave = (column) => () => [paragraph('whyWave', { row, column })];
  return [paragraph('vectorHint', { shown: values[row].length, columns, token: token(row) }),
    cells(values[row], learned('token', ids[row])), el('h3', {}, text('position')), paragraph(kind, { row }),
    places ? cells(places[row], kind === 'learned' ? learned('position', row) : wave) : ''];
}
function drawAttention() {
  if (!answer.attention) return [paragraph('noAttention')];
  const { weights, output } = answer.attention, row = weights[chosen];
  return [paragraph('attentionHint', { token: token(chosen) }),
    chips('attention', (k) => number(row[k], whyWeight(chosen, k), percent(row[k])), (k) => row[k]),
    el('h3', {}, text('output', { token: token(chosen) })), cells(output[chosen], (c) => whyOutput(chosen, c)),
    el('h3', {}, text('grid')), paragraph('gridHint'), ...drawGrid(weights)];
}
function drawGrid(weights) {
  const count = weights.length, size = Math.max(3, Math.floor(kGrid / count)), side = size * count;
  const canvas = el('canvas', { tabIndex: 0, role: 'img', width: side, height: side }), said = el('p');
  const moveTo = (...place) => {
    const [q, k] = cell = place.map((at) => Math.min(Math.max(at, 0), count - 1)), context = canvas.getContext('2d');
    context.clearRect(0, 0, side, side);
    context.fillStyle = context.strokeStyle = kGridColour;
    weights.forEach((row, y) => row.forEach((weight, x) => {
      context.globalAlpha = weight;
      context.fillRect(x * size, y * size, size, size);
    }));
    context.globalAlpha = 1;
    context.strokeRect(k * size + 0.5, q * size + 0.5, size - 1, size - 1);
    canvas.ariaLabel = said.textContent = `${token(q)} → ${token(k)}: ${percent(weights[q][k])}`;
  };
  canvas.onkeydown = (event) => {
    const move = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    if (event.key === 'Enter') canvas.click();
    if (move) { event.preventDefault(); moveTo(cell[0] + move[0], cell[1] + move[1]); }
  };
  canvas.onpointerdown = canvas.onpointermove = ({ offsetX, offsetY }) =>
    moveTo(...[offsetY, offsetX].map((at) => Math.floor((at / canvas.clientWidth) * count)));
  canvas.onclick = () => showTrail([...trail, whyWeight(...cell)]);
  moveTo(...cell);
  return [canvas, said];
}
function drawLayers() {
  const layers = answer.layer_predictions, shown = (guess) => `${visible(guess.token)} ${percent(guess.probability)}`;
  const prediction = (layer, i, best = layer.top[i][0]) => number(best.probability, whyLayer(layer, i), shown(best),
    { className: 'number', share: best.probability, title: layer.top[i].map(shown).join('\n') });
  const made = table([text('token'), ...layers.map(({ layer }) => `${text('layer')} ${layer}`)],
    answer.ids.map((_, i) => [token(i), ...layers.map((layer) => prediction(layer, i))]));
  const box = { className: 'scroll', tabIndex: 0, role: 'group', ariaLabel: text('layersTitle') };
  return [paragraph('layersHint'), el('div', box, made)];
}
function drawSoftmax() {
  const row = (other, i) => [visible(other.token), el('div', { className: 'bar', share: other.probability }),
    number(other.probability, whyProbability(i), percent(other.probability)), number(other.logit, whyLogit(other))];
  return [paragraph('softmaxHint'), table([text('token'), '', '%', 'logit'], (answer.logits?.top ?? []).map(row))];
}
function drawSteps() {
  for (const make of [drawTokens, drawVector, drawAttention, drawLayers, drawSoftmax])
    find(make.name.slice(4).toLowerCase()).replaceChildren(...make());
}
async function look() {
  const [layer, head, temperature] = ['layer', 'head', 'softmax'].map((name) => Number(setting(name)));
  const body = { model: run.model, text: find('inside-text').value, layer, head, top: 5, temperature };
  const asks = JSON.stringify([{ ...body, model: run.name }, settings.get('checkpoint'), language()]);
  if (question === asks && (trail.length || askedAt === run.shown)) return; // a new checkpoint closes no explanation
  [question, askedAt] = [asks, run.shown];
  asking.abort();
  const { signal } = asking = new AbortController();
  const told = (error) => { if (!signal.aborted) say('problem', error.message); };
  const found = await request('/api/inside', { body, signal }).then((response) => response.json()).catch(told);
  if (!found) return;
  [answer, chosen, trail] = [found, Math.min(chosen, found.ids.length - 1), []];
  [find('why').hidden, find('explained').hidden] = [true, false];
  say('problem', '');
  drawSteps();
}
function forgetInside() {
  asking.abort();
  [answer, question, trail, find('inside-text').defaultValue] = [null, '', [], ''];
  find('explained').hidden = find('why').hidden = true;
}
function drawInside() {
  const box = find('inside-text'), begun = ((writer === run.name && old) || record.samples.at(-1)?.text || '').trim();
  const bytes = new TextEncoder().encode([...begun].slice(0, 40).join('')).slice(0, run.block_size); // it can be read
  box.defaultValue ||= new TextDecoder().decode(bytes, { stream: true }); // is shown until the user changes it
  clearTimeout(timer);
  if (!run.can_look_inside) say('problem', text('cannotLook'));
  else if (box.value) timer = setTimeout(look, kAskAfter);
}
find('look').onsubmit = (event) => { event.preventDefault(); question = ''; look(); };

// === The views, the choice of a run, of a checkpoint and of a language ===
const kViews = { watch: drawWatch, write: drawWrite, inside: drawInside }, kLookForRuns = 3000; // milliseconds
const tab = (name) => find(`tab-${name}`);
const fill = (name, put) => all(`[data-${name}]`).forEach((element) => put(element, element.dataset[name]));
function fillTexts() {
  document.documentElement.lang = language();
  find('language').lang = language() === 'ja' ? 'en' : 'ja';
  const ownText = (element) => (element.firstElementChild ? element.firstChild : element);
  fill('text', (element, name) => { ownText(element).textContent = text(name); });
  fill('label', (element, name) => { element.ariaLabel = text(name); });
  fill('placeholder', (element, name) => { element.placeholder = text(name); });
  fill('options', (element, names) => element.replaceChildren(
    ...names.split(' ').map((name) => new Option(Number(name) ? name : text(name), name))));
}

// Controls show what the address says, or their first value.
function readSettings() {
  for (const input of all('main [name]')) {
    input.value = settings.get(input.name) ?? input.defaultValue ?? input[0].value;
    if (input.type === 'range') input.nextElementSibling.value = input.value;
  }
}
function readCheckpoint() {
  const { checkpoints, best, name } = run, slider = find('checkpoint'), max = checkpoints.length - 1;
  const wanted = settings.get('checkpoint') ?? 'best';
  const found = checkpoints.indexOf(wanted === 'best' ? best : Number(wanted)), value = found < 0 ? max : found;
  const step = checkpoints[value], also = [step === best && 'toBest', value === max && 'toLatest'].filter(Boolean);
  const words = [text('stepName', { step }), ...also.map((note) => text(note))];
  const model = step === best && wanted === 'best' ? '' : value === max ? '@last' : `@${step}`; // steps may be deleted
  Object.assign(run, { shown: step, model: step === undefined ? name : name + model });
  Object.assign(slider, { max, value, ariaValueText: words.join(', ') }).nextElementSibling.value = words.join(' · ');
}
function draw() {
  for (const name of Object.keys(kViews)) {
    find(name).hidden = name !== view;
    Object.assign(tab(name), { ariaSelected: String(name === view), tabIndex: name === view ? 0 : -1 });
  }
  find('model').hidden = view === 'watch' || !run?.checkpoints.length;
  if (!run) return;
  find('layer').max = run.n_layer - 1;
  find('head').max = run.n_head - 1;
  readSettings();
  readCheckpoint();
  kViews[view]();
}
async function lookForRuns() {
  const runs = await request('/api/runs').then((response) => response.json()).catch((error) => {
    lost = true;
    say('problem', error instanceof TypeError ? text('serverGone') : error.message);
  });
  if (!runs) return;
  const names = runs.map(({ name }) => name), before = run, select = find('run');
  run = runs[Math.max(names.indexOf(settings.get('run') ?? run?.name), 0)] ?? null;
  if (listed !== (listed = JSON.stringify(names))) select.replaceChildren(...names.map((n) => new Option(n, n)));
  [select.value, select.parentElement.hidden] = [run?.name, runs.length < 2];
  if (lost || run?.name !== before?.name || !run) say('problem', run ? '' : text('noRuns'));
  lost = !run;
  if (run?.name !== before?.name) forgetInside();
  if (run?.name !== before?.name || run?.running !== before?.running) follow();
  draw();
}
async function start() {
  const choose = (name, value) => { set(name, value); draw(); };
  for (const input of all('main [name]')) {
    if (input.type === 'range') input.after(el('output'));
    input.oninput = () => choose(input.name, input.value);
  }
  find('checkpoint').oninput = ({ target: { value, max } }) => {
    const step = run.checkpoints[value];
    choose('checkpoint', step === run.best ? 'best' : value === max ? 'latest' : step);
  };
  find('sample').oninput = drawSamples;
  find('run').onchange = ({ target }) => { settings.delete('checkpoint'); set('run', target.value); lookForRuns(); };
  roving(document.querySelector('[role=tablist]'), '[role=tab]');
  for (const name of Object.keys(kViews))
    tab(name).onfocus = tab(name).onclick = () => { if (view !== name) location.hash = `${name}&${settings}`; };
  const read = () => { fillTexts(); readSettings(); draw(); };
  find('language').onclick = () => { set('lang', language() === 'ja' ? 'en' : 'ja'); follow(); read(); };
  window.onhashchange = () => { readAddress(); say('problem', ''); read(); lookForRuns(); };
  document.onvisibilitychange = listen;
  readAddress();
  read();
  for (;;) {
    if (!document.hidden || !run) await lookForRuns().catch(console.error); // a failed drawing ends nothing
    await wait(kLookForRuns);
  }
}
start();
