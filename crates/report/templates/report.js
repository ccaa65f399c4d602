// Filters, sorting and the list of every sample. The view is kept in the address, so that a link
// shows it again: #q=TEXT&c=CANDIDATE,…&m=METRIC,…&s=SORT&o=OPEN METRIC,…&at=SECTION
(() => {
  'use strict';
  const all = (selector, within) => [...(within || document).querySelectorAll(selector)];
  const one = (id) => document.getElementById(id);
  const data = JSON.parse(one('data').textContent);
  const form = one('filter');
  if (!form) return;
  const find = one('find'), sort = one('sort'), status = one('view');
  const lists = { c: new Set(), m: new Set(), o: new Set() };
  let at = '';

  const words = () => find.value.toLowerCase().split(/[\s,]+/).filter(Boolean);
  const showsCandidate = (name) => {
    if (lists.c.size && !lists.c.has(name)) return false;
    const wanted = words();
    return !wanted.length || wanted.some((word) => name.toLowerCase().includes(word));
  };
  const showsMetric = (name) => !lists.m.size || lists.m.has(name);

  const made = (tag, text) => {
    const node = document.createElement(tag);
    node.textContent = text;
    return node;
  };

  // The commands of a trial. Before their last options are the user's own words, which are left.
  function commands(candidate, seed, id, cuts) {
    let [, show, repeat] = cuts || [, data.show.replace('TRIAL', () => id), data.repeat];
    const part = Math.max(0, repeat.lastIndexOf(' --fs CANDIDATE'));
    repeat = repeat.slice(0, part) +
      repeat.slice(part).replaceAll('SEED', seed).replaceAll('CANDIDATE', () => candidate);
    return [show, repeat].filter(Boolean);
  }

  // Shows or hides the commands of the trial on whose id `button` stands, below its line.
  function toggle(button) {
    const row = button.closest('tr');
    const open = button.getAttribute('aria-expanded') === 'true';
    button.setAttribute('aria-expanded', String(!open));
    if (open) {
      row.nextElementSibling.remove();
      return;
    }
    const [candidate, seed] = [...row.cells].map((cell) => cell.textContent);
    const metric = button.closest('details').dataset.m;
    const cuts = metric === 'power_loss' ? data.cuts[candidate] : undefined;
    const cell = document.createElement('td');
    cell.colSpan = row.cells.length;
    cell.append(...commands(candidate, seed, button.textContent, cuts).map((text) => made('pre', text)));
    const below = document.createElement('tr');
    below.append(cell);
    row.after(below);
  }

  function samples(details) {
    const metric = data.metrics.find((m) => m.name === details.dataset.m);
    const table = document.createElement('table');
    const line = (cells, tag) => {
      const row = document.createElement('tr');
      row.append(...cells.map((cell) => (cell instanceof Node ? cell : made(tag, cell))));
      return row;
    };
    const called = (id) => {
      const cell = document.createElement('td'), button = made('button', id);
      button.type = 'button';
      button.className = 'id';
      button.setAttribute('aria-expanded', 'false');
      cell.append(button);
      return id === '-' ? id : cell;
    };
    const unit = metric.unit || 'ratio';
    const head = document.createElement('thead'), body = document.createElement('tbody');
    head.append(line(['Candidate', 'Seed', `Value (${unit})`, metric.name === 'power_loss' ? 'Series' : 'Trial'], 'th'));
    data.candidates.forEach((candidate, index) => {
      if (!showsCandidate(candidate.name)) return;
      const ids = candidate.ids.split(' ');
      candidate.seeds.forEach((seed, place) => {
        const value = metric.values[index][place];
        const text = value === null ? 'no figure' : String(value);
        const [series] = (value !== null && data.cuts[candidate.name]) || ['-'];
        const id = called(metric.name === 'power_loss' ? series : ids[place]);
        body.append(line([candidate.name, String(seed), text, id], 'td'));
      });
    });
    table.append(head, body);
    const hint = made('p', 'Press the id of a trial for its commands.');
    hint.className = 'scale';
    const scroll = document.createElement('div');
    scroll.className = 'scroll';
    scroll.tabIndex = 0;
    scroll.append(table);
    details.replaceChildren(details.firstElementChild, hint, scroll);
  }

  // Brings `target` into view; what is folded around it is opened.
  function reveal(target) {
    const folded = target.closest('details') || target.querySelector(':scope > details.told');
    if (folded) folded.open = true;
    target.scrollIntoView();
  }

  function order() {
    const body = one('picture').querySelector('tbody');
    const key = (row) => {
      if (sort.value === 'name') return row.dataset.c;
      if (sort.value === 'score') return Number(row.dataset.order);
      const cell = all('td[data-m]', row).find((td) => td.dataset.m === sort.value);
      return cell.dataset.order === '' ? Infinity : Number(cell.dataset.order);
    };
    const rows = all('tr', body).map((row) => [key(row), Number(row.dataset.order), row]);
    rows.sort(([a, x], [b, y]) => (a < b ? -1 : a > b ? 1 : x - y));
    body.append(...rows.map(([, , row]) => row));
    for (const head of all('.heat th[data-m]')) {
      if (head.dataset.m === sort.value) head.setAttribute('aria-sort', 'ascending');
      else head.removeAttribute('aria-sort');
    }
  }

  function hash() {
    const view = new URLSearchParams();
    if (find.value.trim()) view.set('q', find.value.trim());
    for (const key of ['c', 'm', 'o']) if (lists[key].size) view.set(key, [...lists[key]].join(','));
    if (sort.value !== 'score') view.set('s', sort.value);
    if (![...view].length) return at ? `#${at}` : '';
    if (at) view.set('at', at);
    return `#${view}`;
  }

  function draw() {
    const names = all('.heat tbody tr').map((row) => row.dataset.c);
    const metrics = data.metrics.map((m) => m.name);
    for (const node of all('[data-c]')) node.hidden = !showsCandidate(node.dataset.c);
    for (const node of all('.heat [data-m], .map [data-m], section[data-m]')) node.hidden = !showsMetric(node.dataset.m);
    for (const chip of all('button[data-pick]', form)) {
      chip.setAttribute('aria-pressed', String(lists[chip.dataset.pick].has(chip.value)));
    }
    for (const details of all('details.samples')) {
      details.open = lists.o.has(details.dataset.m);
      if (!details.open) continue;
      samples(details);
      const around = details.parentElement.closest('details');
      if (around) around.open = true;
    }
    order();
    const shown = names.filter(showsCandidate).length, seen = metrics.filter(showsMetric).length;
    const filtered = shown < names.length || seen < metrics.length;
    status.hidden = !filtered;
    status.firstElementChild.textContent =
      `Shown: ${shown} of ${names.length} candidates, ${seen} of ${metrics.length} metrics.`;
  }

  function keep() {
    draw();
    history.replaceState(null, '', hash() || location.pathname + location.search);
  }

  function read() {
    const text = location.hash.slice(1);
    const view = new URLSearchParams(text.includes('=') ? text : '');
    at = text.includes('=') ? view.get('at') || '' : text;
    find.value = view.get('q') || '';
    sort.value = view.get('s') || 'score';
    if (!sort.value) sort.value = 'score';
    for (const key of ['c', 'm', 'o']) lists[key] = new Set((view.get(key) || '').split(',').filter(Boolean));
    if (lists.c.size || lists.m.size) form.querySelector('details').open = true;
    draw();
    const target = at && one(at);
    if (target) reveal(target);
  }

  document.addEventListener('click', (event) => {
    const link = event.target.closest('a[href^="#"]');
    const chip = event.target.closest('button[data-pick]');
    const id = event.target.closest('button.id');
    if (link) {
      event.preventDefault();
      at = link.getAttribute('href').slice(1);
      const target = one(at);
      if (target.hidden) lists.m.clear();
      draw();
      history.pushState(null, '', hash());
      reveal(target);
      target.tabIndex = -1;
      target.focus({ preventScroll: true });
    } else if (id) {
      toggle(id);
    } else if (chip) {
      const list = lists[chip.dataset.pick];
      if (!list.delete(chip.value)) list.add(chip.value);
      keep();
    } else if (status.contains(event.target) && event.target.tagName === 'BUTTON') {
      find.value = '';
      lists.c.clear();
      lists.m.clear();
      keep();
      find.focus();
    }
  });
  for (const details of all('details.samples')) {
    details.addEventListener('toggle', () => {
      if (details.open === lists.o.has(details.dataset.m)) return;
      if (details.open) lists.o.add(details.dataset.m);
      else lists.o.delete(details.dataset.m);
      keep();
    });
  }
  const told = all('details.told');
  let opened = [];
  addEventListener('beforeprint', () => {
    opened = told.filter((details) => !details.open);
    for (const details of opened) details.open = true;
  });
  addEventListener('afterprint', () => {
    for (const details of opened) details.open = false;
  });
  form.addEventListener('submit', (event) => event.preventDefault());
  find.addEventListener('input', keep);
  sort.addEventListener('change', keep);
  addEventListener('hashchange', read);
  addEventListener('popstate', read);
  form.hidden = false;
  read();
})();
