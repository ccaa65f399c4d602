// The filter of a comparison. It is kept in the address, so that a link shows the same view again:
// #q=TEXT&k=worse|better
(() => {
  'use strict';
  const form = document.getElementById('filter');
  const find = document.getElementById('find'), kind = document.getElementById('kind');
  const status = document.getElementById('view');
  const lines = [...document.querySelectorAll('[data-name]')];

  function draw() {
    const words = find.value.toLowerCase().split(/[\s,]+/).filter(Boolean);
    let shown = 0;
    for (const line of lines) {
      const name = line.dataset.name.toLowerCase();
      const kinds = (line.dataset.kind || '').split(' ');
      const wanted = !('kind' in line.dataset) || !kind.value || kinds.includes(kind.value);
      line.hidden = !(wanted && words.every((word) => name.includes(word)));
      if (!line.hidden && 'kind' in line.dataset) shown += 1;
    }
    status.textContent = words.length || kind.value ? `${shown} changes shown` : '';
  }

  function keep() {
    draw();
    const view = new URLSearchParams();
    if (find.value.trim()) view.set('q', find.value.trim());
    if (kind.value) view.set('k', kind.value);
    const text = String(view);
    history.replaceState(null, '', text ? `#${text}` : location.pathname + location.search);
  }

  function read() {
    const text = location.hash.slice(1);
    if (text && !text.includes('=')) return;
    const view = new URLSearchParams(text);
    find.value = view.get('q') || '';
    kind.value = view.get('k') || '';
    if (kind.selectedIndex < 0) kind.value = '';
    draw();
  }

  form.addEventListener('submit', (event) => event.preventDefault());
  find.addEventListener('input', keep);
  kind.addEventListener('change', keep);
  addEventListener('hashchange', read);
  form.hidden = false;
  read();
})();
