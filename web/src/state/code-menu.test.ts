// The menu offers what can be done with a name, and its filters match exactly that name.
import { describe, expect, it } from 'vitest';
import { NO_CODE } from '../model/code';
import { exactly, menuItems, type MenuSubject } from './code-menu';

const NAME = { ...NO_CODE, id: 3, key: 'a::b<c*>(d)', label: 'a::b', full: 'a::b<c*>(d)', file: '/src/a.cpp', line: 7 };
const SUBJECT: MenuSubject = { name: NAME, path: 'main\na::b', editor: 'vscode://file/%f:%l', hasSource: true, canFilter: true };

describe('exactly', () => {
  it.each(['operator new[](unsigned long)', 'a::b<c*>(d)', '$x.y|z^', '\\'])('matches %s and nothing else', (name) => {
    const pattern = new RegExp(exactly(name));
    expect(pattern.test(name)).toBe(true);
    expect(pattern.test(`${name}x`)).toBe(false);
  });
});

describe('menuItems', () => {
  const labels = (subject: MenuSubject): readonly string[] => menuItems(subject).map((item) => item.label);

  it('has everything for a function with a source line', () => {
    expect(labels(SUBJECT)).toEqual(['Focus', 'Hide', 'Show from here', 'Merge', 'Source: a.cpp:7', 'Open in the editor', 'Copy the name', 'Copy the path', 'Copy the file and line']);
  });

  it('leaves out what is not possible', () => {
    expect(labels({ ...SUBJECT, name: { ...NAME, key: '#3', file: '' }, path: '', canFilter: true })).toEqual(['Merge', 'Copy the name']);
    expect(labels({ ...SUBJECT, canFilter: false, hasSource: false, editor: 'javascript:alert(1)' })).toEqual(['Merge', 'Copy the name', 'Copy the path', 'Copy the file and line']);
  });
});
