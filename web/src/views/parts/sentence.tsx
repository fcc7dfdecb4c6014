// A sentence of the server, in which figures stay with their units.
import type { JSX } from 'preact';
import { figureParts } from '../../base/figure-parts';
import './sentence.css';

export function Sentence(props: { readonly text: string }): JSX.Element {
  return (
    <>
      {figureParts(props.text).map((part, index) =>
        index % 2 === 0 ? (
          part
        ) : (
          <span key={index} class="sentence-figure">
            {part}
          </span>
        ),
      )}
    </>
  );
}
