// Sizes and lifetimes of blocks: histograms stacked by call site, and both together as a heat map.
import type { JSX } from 'preact';
import { useMemo } from 'preact/hooks';
import { histogram as histogramAnswer, sizeLifetime, type Histogram } from '../api/answers';
import { comparesFiles, wholeRunParams, type Address } from '../state/address';
import { go } from '../state/app-state';
import { useAddress, useAsk } from '../state/hooks';
import { histogramParams } from '../state/questions';
import { HeatMap } from './heat-map';
import { Bars, BarsButtons, BarsLegend, BarsTable, histogramModel, type RankKey } from './histogram';
import { Choice, ToggleButton } from './parts/controls';
import { useCapability } from './parts/meta-context';
import { useNothing } from './parts/nothing';
import { Notice, Pane } from './parts/pane';
import './sizes.css';

const KINDS = [
  { value: 'sizes', label: 'Sizes' },
  { value: 'lifetimes', label: 'Lifetimes' },
  { value: 'size_lifetime', label: 'Size × lifetime' },
] as const;

const RANKS = [
  { value: 'blocks', label: 'Blocks' },
  { value: 'bytes', label: 'Bytes' },
] as const;

function Heat(props: { readonly address: Address }): JSX.Element {
  const { address } = props;
  const asked = useAsk('size_lifetime', wholeRunParams(address), sizeLifetime);
  const isDiff = comparesFiles(address);
  const old = useAsk(isDiff ? 'size_lifetime' : null, { ...wholeRunParams(address), recording: 'old' }, sizeLifetime);
  return (
    <>
      <Pane asked={asked} label="Size × lifetime">
        {(answer) => <HeatMap answer={answer} />}
      </Pane>
      {isDiff ? (
        <>
          <h2>Before</h2>
          <Pane asked={old} label="Before">
            {(answer) => <HeatMap answer={answer} />}
          </Pane>
        </>
      ) : null}
    </>
  );
}

/** Nearly all blocks live for less than a millisecond: on a linear scale the others are invisible. */
function useLog(kind: string): boolean {
  const { scale } = useAddress();
  return scale === '' ? kind === 'lifetimes' : scale === 'log';
}

function Drawing(props: { readonly now: Histogram; readonly old: Histogram | null; readonly rank: RankKey; readonly kind: 'sizes' | 'lifetimes' }): JSX.Element {
  const { now, old, rank, kind } = props;
  const nothing = useNothing();
  const isLog = useLog(kind);
  const model = useMemo(() => histogramModel(now, old, rank, isLog), [now, old, rank, isLog]);
  if (model.bars.length === 0) {
    return <Notice>{nothing}</Notice>;
  }
  return (
    <>
      <Bars model={model} />
      <BarsLegend model={model} />
      <div class="toolbar sizes-save">
        <BarsButtons model={model} name={kind} title={`${kind === 'sizes' ? 'Sizes' : 'Lifetimes'} of blocks, in ${rank}`} />
      </div>
      <div class="sizes-table">
        <BarsTable model={model} />
      </div>
    </>
  );
}

function KindChoice(props: { readonly kind: string }): JSX.Element {
  return <Choice label="Histogram" value={props.kind} options={KINDS} onChange={(histogram) => go({ histogram })} />;
}

function Histograms(props: { readonly address: Address; readonly kind: 'sizes' | 'lifetimes' }): JSX.Element {
  const { address, kind } = props;
  const rank = RANKS.find((entry) => entry.value === address.rank)?.value ?? 'blocks';
  const params = histogramParams(address, rank);
  const asked = useAsk(kind, params, histogramAnswer);
  const isDiff = comparesFiles(address);
  const old = useAsk(isDiff ? kind : null, { ...params, recording: 'old' }, histogramAnswer);
  return (
    <>
      <div class="toolbar">
        <KindChoice kind={kind} />
        <Choice label="Height of the bars" value={rank} options={RANKS} onChange={(value) => go({ rank: value })} />
        <ToggleButton isOn={useLog(kind)} label="Log scale" title="Heights grow with the logarithm, so that low bars can be seen" onChange={(on) => go({ scale: on ? 'log' : 'linear' })} />
        <span class="soft">
          {kind === 'sizes' ? 'How large the blocks were that were asked for.' : 'How long the blocks lived that were freed.'}
        </span>
      </div>
      {old.error === null ? null : <Notice bad>{`The recording compared with: ${old.error.message}.`}</Notice>}
      <Pane asked={asked} label="Histogram">
        {(answer) => <Drawing now={answer} old={isDiff ? old.value : null} rank={rank} kind={kind} />}
      </Pane>
    </>
  );
}

export function SizesView(): JSX.Element {
  const address = useAddress();
  const kind = KINDS.find((entry) => entry.value === address.histogram)?.value ?? 'sizes';
  const hasSizes = useCapability('sizes');
  const hasLifetimes = useCapability('lifetimes');
  const isThere = kind === 'sizes' ? hasSizes : kind === 'lifetimes' ? hasLifetimes : hasSizes && hasLifetimes;
  return (
    <div class="view">
      {isThere && kind !== 'size_lifetime' ? null : (
        <div class="toolbar">
          <KindChoice kind={kind} />
        </div>
      )}
      {!isThere ? (
        <Notice>{`This recording has no ${kind === 'sizes' ? 'block sizes' : 'lifetimes'}.`}</Notice>
      ) : kind === 'size_lifetime' ? (
        <Heat address={address} />
      ) : (
        <Histograms key={kind} address={address} kind={kind} />
      )}
    </div>
  );
}
