// SPDX-License-Identifier: MIT
// The dashboards of contrib/grafana, against the types that Grafana publishes for its dashboards and panels: tsc judges
// each as a literal, so that unknown fields are errors, too. The queries run in e2e.production and store.serve.
//
// CAIRN_GRAFANA: the folder where the packages are installed.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import test from 'node:test';

const FOLDER = path.resolve(import.meta.dirname, '../../contrib/grafana');
const HOME = process.env.CAIRN_GRAFANA;
const NAMES = readdirSync(FOLDER).filter((name) => name.endsWith('.json'));
const read = (name) => JSON.parse(readFileSync(path.join(FOLDER, name), 'utf8'));

// In JSON an enumeration is its value. A plugin's queries and options have types of their own: those of tables and time
// series are below, and a query is what the data source makes of it.
const TYPES = `
import type { Dashboard, Panel } from '@grafana/schema';
import type * as Table from '@grafana/schema/dist/esm/raw/composable/table/panelcfg/x/TablePanelCfg_types.gen';
import type * as Series from '@grafana/schema/dist/esm/raw/composable/timeseries/panelcfg/x/TimeSeriesPanelCfg_types.gen';
type Plain<T> = T extends string ? \`\${T}\` : T extends number | boolean | null | undefined ? T
  : unknown extends T ? unknown : T extends object ? { [K in keyof T]: Plain<T[K]> } : T;
type Deep<T> = T extends object ? { [K in keyof T]?: Deep<T[K]> } : T;
type Config<C> = { defaults: Omit<Plain<NonNullable<Panel['fieldConfig']>['defaults']>, 'custom'> & { custom?: Plain<Deep<C>> };
  overrides: Plain<NonNullable<Panel['fieldConfig']>['overrides']> };
type Of<Kind, Options, Fields> = Omit<Plain<Panel>, 'type' | 'options' | 'fieldConfig'> &
  { type: Kind; options: Plain<Deep<Options>>; fieldConfig: Config<Fields> };
export type Board = Omit<Plain<Dashboard>, 'panels'> &
  { panels: (Of<'timeseries', Series.Options, Series.FieldConfig> | Of<'table', Table.Options, Table.FieldConfig>)[] };
`;

/** What tsc says of dashboards, by their names. */
function complaints(dashboards) {
  const folder = mkdtempSync(path.join(HOME, 'boards-')); // where tsc finds the packages
  try {
    writeFileSync(path.join(folder, 'types.ts'), TYPES);
    for (const [name, dashboard] of Object.entries(dashboards)) {
      writeFileSync(path.join(folder, `${name}.ts`),
        `import type { Board } from './types';\nexport const board: Board = ${JSON.stringify(dashboard, null, 1)};\n`);
    }
    writeFileSync(path.join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions: { strict: true, noEmit: true, types: [],
      target: 'es2022', module: 'esnext', moduleResolution: 'bundler', skipLibCheck: true }, include: ['*.ts'] }));
    const run = spawnSync(process.execPath, [path.join(HOME, 'node_modules/typescript/bin/tsc'), '--pretty', 'false', '-p', folder],
      { encoding: 'utf8' });
    assert.equal(run.stderr, '');
    const said = Object.fromEntries(Object.keys(dashboards).map((name) => [name, []]));
    for (const line of run.stdout.split('\n').filter((text) => /^\S.*error TS/.test(text))) {
      (said[path.basename(line).match(/^(.*)\.ts\(/)?.[1]] ?? assert.fail(line)).push(line);
    }
    return said;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

test('each dashboard is what Grafana takes', () => {
  assert.equal(NAMES.length, 3);
  const said = complaints(Object.fromEntries(NAMES.map((name, number) => [`board${number}`, read(name)])));
  assert.deepEqual(said, { board0: [], board1: [], board2: [] });
});

test('mistakes are noticed', () => {
  const mistakes = {
    unknownField: (board) => { board.panels[0].grid = {}; },
    unknownOption: (board) => { board.panels[0].options.legend.calc = ['max']; },
    unknownPlacement: (board) => { board.panels[0].options.legend.placement = 'left'; },
    unknownPanel: (board) => { board.panels[0].type = 'graph'; },
    unknownStacking: (board) => { board.panels[0].fieldConfig.defaults.custom.stacking.mode = 'stacked'; },
    aTextForANumber: (board) => { board.panels[0].gridPos.h = '8'; },
    noSchemaVersion: (board) => { delete board.schemaVersion; },
    aPlaceWithoutAWidth: (board) => { delete board.panels[0].gridPos.w; },
    anUnknownVariable: (board) => { board.templating.list[0].type = 'list'; },
    anOverrideForNothing: (board) => { delete board.panels[0].fieldConfig.overrides[0].matcher; },
  };
  const wrong = Object.fromEntries(Object.entries(mistakes).map(([name, make]) => {
    const board = read('cairn.json');
    make(board);
    return [name, board];
  }));
  assert.deepEqual(Object.entries(complaints(wrong)).filter(([, said]) => said.length === 0).map(([name]) => name), []);
});
