// The flame graph's canvas as a component: holds the window onto the layout, animates it to the
// zoomed frame, and converts input to actions. The canvas is as large as the visible part; the box
// around it scrolls.
import type { JSX } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { at } from '../base/columns';
import { drawFlame, ROW_PX, rowAt, rowTop, type FlameLook } from '../render/flame/draw';
import { hitFlame, neighbour, type Direction } from '../render/flame/hit';
import { listenFlame } from '../render/flame/input';
import { newSlice, sliceFlame } from '../render/flame/slice';
import { openFunction } from './parts/code-label';
import { frameLines, type FlameModel } from './flame-model';

const ZOOM_MS = 180;
/**
 * In a box below this height the tooltip has only the chosen cost: on a phone the others would not
 * fit.
 */
const SMALL_PX = 320;

export interface FlameCanvasProps {
  readonly model: FlameModel;
  readonly look: FlameLook;
  readonly isFlame: boolean;
  /** The frame that fills the width. */
  readonly zoomed: number;
  readonly onZoom: (frame: number) => void;
  readonly onStatus: (frame: number) => void;
}

interface Pointed {
  readonly frame: number;
  readonly x: number;
  readonly y: number;
}

/** The state between two paintings, changed in place: 60 paintings per second must not allocate. */
class FlamePainter {
  readonly slice = newSlice();
  from = 0;
  to = 1;
  hovered = -1;
  selected = -1;
  private handle = 0;
  private aim: { from: number; to: number; fromOld: number; toOld: number; start: number } | null = null;

  constructor(
    public props: FlameCanvasProps,
    readonly canvas: HTMLCanvasElement,
    readonly box: HTMLElement,
  ) {}

  aimAt(frame: number, animate: boolean): void {
    const from = at(this.props.model.layout.left, frame);
    const to = Math.max(at(this.props.model.layout.right, frame), from + 1);
    const still = !animate || matchMedia('(prefers-reduced-motion: reduce)').matches;
    if (still) {
      this.aim = null;
      this.from = from;
      this.to = to;
    } else {
      this.aim = { from, to, fromOld: this.from, toOld: this.to, start: performance.now() };
    }
    this.request();
  }

  request(): void {
    if (this.handle === 0) {
      this.handle = requestAnimationFrame((now) => {
        this.handle = 0;
        this.step(now);
        this.paint();
      });
    }
  }

  stop(): void {
    cancelAnimationFrame(this.handle);
    this.handle = 0;
  }

  private step(now: number): void {
    if (this.aim === null) {
      return;
    }
    const t = Math.min(Math.max((now - this.aim.start) / ZOOM_MS, 0), 1);
    const eased = 1 - (1 - t) ** 3;
    this.from = this.aim.fromOld + (this.aim.from - this.aim.fromOld) * eased;
    this.to = this.aim.toOld + (this.aim.to - this.aim.toOld) * eased;
    if (t === 1) {
      this.aim = null;
    } else {
      this.request();
    }
  }

  private paint(): void {
    const { layout } = this.props.model;
    const widthPx = this.box.clientWidth;
    const heightPx = this.box.clientHeight;
    const ratio = devicePixelRatio;
    if (this.canvas.width !== Math.round(widthPx * ratio) || this.canvas.height !== Math.round(heightPx * ratio)) {
      this.canvas.width = Math.round(widthPx * ratio);
      this.canvas.height = Math.round(heightPx * ratio);
    }
    const context = this.canvas.getContext('2d', { alpha: false });
    if (context === null) {
      return;
    }
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    const scrollPx = this.box.scrollTop;
    const first = rowAt(scrollPx, layout.rows, this.props.isFlame);
    const last = rowAt(scrollPx + heightPx, layout.rows, this.props.isFlame);
    const rows = { firstRow: Math.min(first, last), lastRow: Math.max(first, last) };
    sliceFlame(layout, { from: this.from, to: this.to, widthPx, ...rows }, this.slice);
    const canvas = { context, widthPx, heightPx, scrollPx, isFlame: this.props.isFlame };
    drawFlame(canvas, layout, this.slice, this.props.look, this);
  }

  frameAt(x: number, y: number): number {
    const { layout } = this.props.model;
    const row = rowAt(y + this.box.scrollTop, layout.rows, this.props.isFlame);
    return hitFlame(layout, row, this.from + (x / this.box.clientWidth) * (this.to - this.from));
  }

  /** Select the frame for an arrow key, and scroll to it. */
  move(key: 'up' | 'down' | 'left' | 'right'): void {
    const deeper = this.props.isFlame ? 'up' : 'down';
    const ways: Readonly<Record<typeof key, Direction>> = {
      up: deeper === 'up' ? 'child' : 'parent',
      down: deeper === 'down' ? 'child' : 'parent',
      left: 'previous',
      right: 'next',
    };
    const { layout } = this.props.model;
    this.selected = this.selected < 0 ? this.props.zoomed : neighbour(layout, this.selected, ways[key]);
    const top = rowTop(at(layout.row, this.selected), layout.rows, this.props.isFlame);
    if (top < this.box.scrollTop) {
      this.box.scrollTop = top;
    } else if (top + ROW_PX > this.box.scrollTop + this.box.clientHeight) {
      this.box.scrollTop = top + ROW_PX - this.box.clientHeight;
    }
    this.props.onStatus(this.selected);
    this.request();
  }
}

function Tooltip(props: { readonly model: FlameModel; readonly pointed: Pointed; readonly box: HTMLElement }): JSX.Element {
  const { pointed, box } = props;
  const right = pointed.x > box.clientWidth / 2;
  const below = pointed.y < box.clientHeight / 2;
  return (
    <div
      class="flame-tip"
      style={{
        [right ? 'right' : 'left']: `${(right ? box.clientWidth - pointed.x : pointed.x) + 14}px`,
        [below ? 'top' : 'bottom']: `${(below ? pointed.y : box.clientHeight - pointed.y) + 14}px`,
      }}
    >
      {frameLines(props.model, pointed.frame, box.clientHeight < SMALL_PX).map((line, index) => (
        <div key={index} class={index === 0 ? 'flame-tip-name' : ''}>
          {line}
        </div>
      ))}
    </div>
  );
}

function listen(painter: FlamePainter, target: HTMLElement, point: (pointed: Pointed | null) => void): () => void {
  const open = (frame: number): void => {
    if (frame > 0) {
      openFunction(painter.props.model.name(frame));
    }
  };
  return listenFlame(target, {
    hover: (x, y) => {
      const frame = painter.frameAt(x, y);
      painter.hovered = frame;
      painter.request();
      point(frame < 0 ? null : { frame, x, y });
      if (frame >= 0) {
        painter.props.onStatus(frame);
      }
    },
    leave: () => {
      painter.hovered = -1;
      painter.request();
      point(null);
    },
    zoomAt: (x, y) => {
      const frame = painter.frameAt(x, y);
      if (frame >= 0) {
        painter.selected = frame;
        painter.props.onZoom(frame);
      }
    },
    openAt: (x, y) => open(painter.frameAt(x, y)),
    move: (key) => painter.move(key),
    zoomSelected: () => painter.props.onZoom(Math.max(painter.selected, 0)),
    openSelected: () => open(painter.selected),
    reset: () => painter.props.onZoom(0),
  });
}

export function FlameCanvas(props: FlameCanvasProps): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const painter = useRef<FlamePainter | null>(null);
  const [pointed, setPointed] = useState<Pointed | null>(null);
  useEffect(() => {
    if (box.current === null || canvas.current === null) {
      return undefined;
    }
    const own = new FlamePainter(props, canvas.current, box.current);
    painter.current = own;
    const request = (): void => own.request();
    const observer = new ResizeObserver(request);
    observer.observe(box.current);
    box.current.addEventListener('scroll', request, { passive: true });
    const silence = listen(own, canvas.current, setPointed);
    return () => {
      own.stop();
      observer.disconnect();
      silence();
    };
  }, []);
  useEffect(() => {
    if (painter.current !== null) {
      painter.current.props = props;
      painter.current.request();
    }
  });
  useEffect(() => {
    // A new layout is shown at once; within one layout the zoom is animated.
    painter.current?.aimAt(props.zoomed, false);
    setPointed(null);
    if (painter.current !== null) {
      painter.current.selected = -1;
      painter.current.hovered = -1;
    }
    if (box.current !== null) {
      box.current.scrollTop = props.isFlame ? box.current.scrollHeight : 0;
    }
  }, [props.model, props.isFlame]);
  useEffect(() => painter.current?.aimAt(props.zoomed, true), [props.zoomed]);
  return (
    <div class="flame-frame">
      <div ref={box} class="flame-box" data-testid="flame-box" tabIndex={-1}>
        <div class="flame-sticky">
          <canvas
            ref={canvas}
            class="flame-canvas"
            tabIndex={0}
            role="application"
            aria-label="Flame graph. Arrow keys move, Enter zooms, o opens the function, Escape zooms out."
          />
        </div>
        <div style={{ height: `${props.model.layout.rows * ROW_PX}px` }} />
      </div>
      {pointed !== null && box.current !== null && pointed.frame < props.model.layout.count ? (
        <Tooltip model={props.model} pointed={pointed} box={box.current} />
      ) : null}
    </div>
  );
}
